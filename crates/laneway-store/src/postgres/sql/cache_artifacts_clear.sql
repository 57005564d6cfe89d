-- What belonged to the results of keys. Along the primary key.
DELETE FROM cache_artifacts WHERE key = ANY ($1);
