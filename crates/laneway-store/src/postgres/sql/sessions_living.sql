-- Of some sessions, those whose lease has not ended, by the clock that leases know: this database's, unless the caller
-- brings its own. Along the primary key.
SELECT id, node FROM sessions
WHERE id = ANY ($1) AND expires_at > coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
