-- Large files of the layer of a result. Along the primary key.
SELECT hash FROM cache_layer_files WHERE key = ?1 ORDER BY hash;
