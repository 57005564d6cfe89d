-- A session takes tasks of a class from here on.
INSERT INTO takers (class, session, delay, places) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING;
