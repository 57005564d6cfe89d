-- A session that lives keeps a pool from here on. Once is enough.
INSERT INTO pools (session, name, image, max) SELECT id, ?2, ?3, ?4 FROM sessions WHERE id = ?1 ON CONFLICT DO NOTHING;
