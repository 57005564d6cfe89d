-- Tasks hold keys from here on.
INSERT INTO holds (key, run_no, position) SELECT * FROM unnest($1, $2, $3) ON CONFLICT DO NOTHING;
