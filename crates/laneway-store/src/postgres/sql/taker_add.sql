-- Sessions take tasks of classes from here on.
INSERT INTO takers (class, session, delay, places, pool) SELECT * FROM unnest($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING;
