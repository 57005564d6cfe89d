-- The session of a worker that is elsewhere, and the moment. No row: there is none, it is over, or it is that of a node.
SELECT node, token, slots, is_draining,
       coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint), ttl_ms
FROM sessions WHERE id = $1 AND token IS NOT NULL;
