-- Large files of layers.
INSERT INTO layer_files (run_no, position, hash) SELECT * FROM unnest($1, $2, $3) ON CONFLICT DO NOTHING;
