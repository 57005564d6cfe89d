-- A session takes tasks of a class from here on.
INSERT INTO takers (class, session, delay, places, pool) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING;
