-- What belongs to the result of a key. Along the primary key.
SELECT name, hash, size, is_executable FROM cache_artifacts WHERE key = ?1 ORDER BY name;
