-- Locks the session that is being returned, if it is still there and, where $2 says so, still expired: it may have
-- renewed meanwhile. Sessions come before runs in the order of locks.
SELECT node, offer IS NOT NULL FROM sessions
WHERE id = $1
  AND (NOT $2 OR expires_at <= coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint))
FOR UPDATE;
