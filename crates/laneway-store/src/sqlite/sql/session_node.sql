-- The address of a session's node, and when its lease ends, if it lives by one. No row: that session is over.
SELECT node, expires_at FROM sessions WHERE id = ?1;
