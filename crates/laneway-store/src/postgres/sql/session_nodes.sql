-- The addresses of sessions' nodes. No row: that session is over. Along the primary key.
SELECT id, node FROM sessions WHERE id = ANY ($1);
