-- Whether a session is alive: not reaped, and its lease has not ended by now. A worker that is late with its renewal must not
-- begin anything: its tasks may be taken from it in the next moment.
SELECT 1 FROM sessions
WHERE id = $1 AND expires_at > coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
