-- Every session that nobody has reaped; of one that lives by a lease, when it was renewed, when that ends, and its length.
SELECT id, node, (SELECT count(*) FROM tasks WHERE status = 'running' AND session = sessions.id) AS held,
       renewed_at, expires_at, ttl_ms
FROM sessions ORDER BY id;
