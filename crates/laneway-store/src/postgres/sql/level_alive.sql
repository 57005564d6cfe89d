-- Whether a session is alive, and stays so until the transaction ends: who returns what it holds waits meanwhile, and finds all of
-- the level. Sessions come before runs in the order of locks.
SELECT 1 FROM sessions
WHERE id = $1 AND expires_at > coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
FOR SHARE;
