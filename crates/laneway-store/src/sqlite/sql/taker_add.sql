-- A session takes tasks of a class from here on.
INSERT INTO takers (class, session, delay) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;
