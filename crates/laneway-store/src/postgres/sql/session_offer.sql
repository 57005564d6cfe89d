-- The address of a session's node, what that has to offer, and whether it takes nothing more. No row: that session is over.
-- Locked first, as by whoever drains or returns it; who submits for it does not wait.
SELECT node, offer, is_draining FROM sessions WHERE id = $1 FOR NO KEY UPDATE;
