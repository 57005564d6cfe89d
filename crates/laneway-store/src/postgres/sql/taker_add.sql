-- Sessions take tasks of classes from here on.
INSERT INTO takers (class, session) SELECT * FROM unnest($1, $2) ON CONFLICT DO NOTHING;
