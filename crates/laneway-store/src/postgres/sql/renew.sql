-- Renews a lease, and notes what the session has done so far. No row: the session is over, and never comes back; it may
-- have expired, as long as nobody has reaped it.
UPDATE sessions
SET renewed_at = moment.now, expires_at = moment.now + ttl_ms, tally = $2, asks = $3, contentions = $4,
    last_active_at = CASE WHEN tally IS NOT DISTINCT FROM $2 THEN last_active_at ELSE moment.now END
FROM (SELECT coalesce($5::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now) AS moment
WHERE id = $1 RETURNING id;
