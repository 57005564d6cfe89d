-- The address of a session's node. No row: that session is over.
SELECT node FROM sessions WHERE id = ?1;
