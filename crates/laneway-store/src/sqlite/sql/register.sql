-- A session begins. Its lock is held already, so that no row is ever without one while its process lives.
INSERT INTO sessions (id, node, pid, registered_at, renewed_at, slots, offer) VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6);
