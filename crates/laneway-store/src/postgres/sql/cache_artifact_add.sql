-- Files that belong to the result of a key.
INSERT INTO cache_artifacts (key, name, hash, size, is_executable)
SELECT $1, given.* FROM unnest($2, $3, $4, $5) AS given;
