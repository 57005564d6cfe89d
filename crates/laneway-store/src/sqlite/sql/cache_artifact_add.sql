-- A file that belongs to the result of a key.
INSERT INTO cache_artifacts (key, name, hash, size, is_executable) VALUES (?1, ?2, ?3, ?4, ?5);
