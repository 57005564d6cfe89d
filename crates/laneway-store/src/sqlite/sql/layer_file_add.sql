-- A large file of a layer.
INSERT INTO layer_files (run_no, position, hash) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;
