-- A session begins, with a lease of $4 milliseconds.
INSERT INTO sessions (id, node, pid, registered_at, renewed_at, expires_at, ttl_ms, slots, offer)
SELECT $1, $2, $3, moment.now, moment.now, moment.now + $4, $4, $6, $7
FROM (SELECT coalesce($5::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now) AS moment;
