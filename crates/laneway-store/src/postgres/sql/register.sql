-- A session begins, with a lease of $4 milliseconds; that of a worker which is elsewhere with its token ($8). None of
-- a program that knows less ($9) than it must here: it waits for a migration that is going on, and sees what came of it.
INSERT INTO sessions (id, node, pid, registered_at, renewed_at, expires_at, ttl_ms, slots, offer, token, fires)
SELECT $1, $2, $3, moment.now, moment.now, moment.now + $4, $4, $6, $7, $8, $10
FROM (SELECT coalesce($5::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now) AS moment
WHERE NOT EXISTS (SELECT 1 FROM meta WHERE key = 'least_schema' AND value::bigint > $9)
RETURNING id;
