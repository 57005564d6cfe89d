-- Large files of the layer of a result that goes, or is kept anew. Along the primary key.
DELETE FROM cache_layer_files WHERE key = ?1;
