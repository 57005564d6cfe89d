-- The layer of a result, and its large files. Along the primary keys.
SELECT paths, bytes, hash, packed, ARRAY(SELECT hash FROM cache_layer_files WHERE cache_layer_files.key = cache_layers.key ORDER BY hash)
FROM cache_layers WHERE key = $1;
