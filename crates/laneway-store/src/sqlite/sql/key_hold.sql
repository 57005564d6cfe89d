-- A task holds a key from here on.
INSERT INTO holds (key, run_no, position) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;
