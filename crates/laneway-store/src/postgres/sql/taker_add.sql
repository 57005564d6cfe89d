-- Sessions take tasks of classes from here on.
INSERT INTO takers (class, session, delay) SELECT * FROM unnest($1, $2, $3) ON CONFLICT DO NOTHING;
