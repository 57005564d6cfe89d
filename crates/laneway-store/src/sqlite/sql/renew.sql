-- Notes what a session has done so far. No row: the session is over.
UPDATE sessions
SET renewed_at = ?5, tally = ?2, asks = ?3, contentions = ?4,
    last_active_at = iif(tally IS ?2, last_active_at, ?5)
WHERE id = ?1;
