-- The layer of a result that goes, or is kept anew. Along the primary key.
DELETE FROM cache_layers WHERE key = ?1;
