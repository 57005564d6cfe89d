-- A session begins, with a lease of $4 milliseconds; that of a worker which is elsewhere with its token ($8).
INSERT INTO sessions (id, node, pid, registered_at, renewed_at, expires_at, ttl_ms, slots, offer, token)
SELECT $1, $2, $3, moment.now, moment.now, moment.now + $4, $4, $6, $7, $8
FROM (SELECT coalesce($5::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now) AS moment;
