-- Notes what a session has done so far, and renews its lease, where it has one. No row: the session is over; it may have
-- expired, as long as nobody has reaped it.
UPDATE sessions
SET renewed_at = ?5, tally = ?2, asks = ?3, contentions = ?4, expires_at = ?5 + ttl_ms,
    last_active_at = iif(tally IS ?2, last_active_at, ?5)
WHERE id = ?1;
