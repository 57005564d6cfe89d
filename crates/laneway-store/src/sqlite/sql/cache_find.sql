-- The result of a key. Along the primary key.
SELECT run, recorded_at, exit_code, output FROM cache WHERE key = ?1;
