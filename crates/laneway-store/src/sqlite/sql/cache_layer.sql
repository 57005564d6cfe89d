-- The layer of a result. Along the primary key.
SELECT paths, bytes, hash, packed FROM cache_layers WHERE key = ?1;
