-- A large file of the layer of a result.
INSERT INTO cache_layer_files (key, hash) VALUES (?1, ?2) ON CONFLICT DO NOTHING;
