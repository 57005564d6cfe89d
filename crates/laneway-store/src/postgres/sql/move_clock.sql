-- The time of the database, in milliseconds.
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
