-- The session of a worker that is elsewhere. No row: there is none, it is over, or it is one of this host.
SELECT node, token, slots, is_draining, ttl_ms FROM sessions WHERE id = ?1 AND token IS NOT NULL;
