-- What time it is.
SELECT coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
