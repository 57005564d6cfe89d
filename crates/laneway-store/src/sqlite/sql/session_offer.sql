-- The address of a session's node, what that has to offer, and whether it takes nothing more. No row: that session is over.
SELECT node, offer, is_draining FROM sessions WHERE id = ?1;
