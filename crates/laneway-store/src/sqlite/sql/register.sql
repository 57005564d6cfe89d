-- A session begins. Its lock is held already, so that no row is ever without one while its process lives.
INSERT INTO sessions (id, node, pid, registered_at) VALUES (?1, ?2, ?3, ?4);
