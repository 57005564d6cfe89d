-- Tasks stand in their orders until they have ended.
INSERT INTO orders (key, version, run_no, position) SELECT * FROM unnest($1, $2, $3, $4) ON CONFLICT DO NOTHING;
