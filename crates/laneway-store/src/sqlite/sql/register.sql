-- A session begins. Its lock is held already, so that no row is ever without one while its process lives. One of a worker
-- that is elsewhere (?7) has a lease of ?8 milliseconds instead. None of a program that knows less (?9) than it must here.
INSERT INTO sessions (id, node, pid, registered_at, renewed_at, slots, offer, token, ttl_ms, expires_at, fires)
SELECT ?1, ?2, ?3, ?4, ?4, ?5, ?6, ?7, ?8, ?4 + ?8, ?10
WHERE NOT EXISTS (SELECT 1 FROM meta WHERE key = 'least_schema' AND CAST(value AS INTEGER) > ?9);
