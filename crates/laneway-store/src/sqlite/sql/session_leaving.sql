-- The address of a session's node, and whether that takes work of others. No row: that session is over.
SELECT node, offer IS NOT NULL FROM sessions WHERE id = ?1;
