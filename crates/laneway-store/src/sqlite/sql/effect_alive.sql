-- Whether a session is alive: not reaped, and its lease, if it lives by one, has not ended by now (?2). A worker that is late
-- with its renewal must not begin anything: its tasks may be taken from it in the next moment.
SELECT 1 FROM sessions WHERE id = ?1 AND (expires_at IS NULL OR expires_at > ?2);
