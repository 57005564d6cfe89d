-- A session begins. Its lock is held already, so that no row is ever without one while its process lives. One of a worker
-- that is elsewhere (?7) has a lease of ?8 milliseconds instead.
INSERT INTO sessions (id, node, pid, registered_at, renewed_at, slots, offer, token, ttl_ms, expires_at)
VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6, ?7, ?8, ?4 + ?8);
