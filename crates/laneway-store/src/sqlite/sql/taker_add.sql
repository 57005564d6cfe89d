-- A session takes tasks of a class from here on.
INSERT INTO takers (class, session) VALUES (?1, ?2) ON CONFLICT DO NOTHING;
