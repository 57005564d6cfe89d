-- What all results take up, and what time it is.
SELECT coalesce(sum(bytes), 0)::bigint,
       coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM cache;
