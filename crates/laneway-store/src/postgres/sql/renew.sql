-- Renews a lease. No row: the session is over, and never comes back; it may have expired, as long as nobody has reaped it.
UPDATE sessions SET renewed_at = moment.now, expires_at = moment.now + $2
FROM (SELECT coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now) AS moment
WHERE id = $1 RETURNING id;
