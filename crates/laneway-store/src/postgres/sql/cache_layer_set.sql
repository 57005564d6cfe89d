-- The layer of a result. Along the primary key.
INSERT INTO cache_layers (key, paths, bytes, hash, packed) VALUES ($1, $2, $3, $4, $5);
