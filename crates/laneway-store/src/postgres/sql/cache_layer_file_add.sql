-- Large files of the layer of a result.
INSERT INTO cache_layer_files (key, hash) SELECT $1, unnest($2) ON CONFLICT DO NOTHING;
