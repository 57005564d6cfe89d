-- Layers of results that are kept anew, and their files. Along the primary keys.
WITH files AS (DELETE FROM cache_layer_files WHERE key = ANY ($1))
DELETE FROM cache_layers WHERE key = ANY ($1);
