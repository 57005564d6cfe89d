-- The owner of a run that is to be, the moment, and the number that it will have. The owner's row stays as long as this
-- transaction: it cannot be reaped before the run is there to be reaped with it. Its renewals are not held up.
SELECT node, coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint),
       nextval(pg_get_serial_sequence('runs', 'no'))
FROM sessions WHERE id = $1 FOR KEY SHARE;
