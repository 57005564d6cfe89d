-- The first and the last number of all runs, and what time it is.
SELECT coalesce(min(no), 0), coalesce(max(no), -1),
       coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM runs;
