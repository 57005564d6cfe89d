-- What time it is, by this server's clock.
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
