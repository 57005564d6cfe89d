-- The moment, and as many numbers of runs as there are to be.
SELECT coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint),
       nextval(pg_get_serial_sequence('runs', 'no'))
FROM generate_series(1, $1);
