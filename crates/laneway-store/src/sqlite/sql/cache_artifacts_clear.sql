-- What belonged to the result of a key. Along the primary key.
DELETE FROM cache_artifacts WHERE key = ?1;
