-- The result of a key, and what time it is. Along the primary key.
SELECT run, recorded_at, exit_code, output,
       coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM cache WHERE key = $1;
