-- Nodes with a session whose lease has not ended, of any schema that ever was. A worker that is elsewhere has a token, and speaks to a
-- service, never to the store. The table is locked: whoever registers waits, and sees what was migrated.
SELECT DISTINCT node FROM sessions
WHERE token IS NULL AND expires_at > (extract(epoch FROM clock_timestamp()) * 1000)::bigint ORDER BY node;
