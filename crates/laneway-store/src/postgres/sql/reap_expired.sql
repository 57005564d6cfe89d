-- Sessions whose lease has ended, for a reaper that has itself renewed since ($1 are its own): one that could not is as cut
-- off as they may be. Not before a full lease after the server started: those who renew were cut off as well. A caller
-- that brings its own clock ($2) knows of no start. A worker that is elsewhere has a full lease from the moment on in which
-- its reaper is there: it may have had nobody to whom it could say that it lives.
SELECT id, node FROM sessions AS victim
WHERE expires_at <= coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
  AND id <> ALL ($1)
  AND EXISTS (SELECT 1 FROM sessions AS reaper WHERE reaper.id = ANY ($1) AND reaper.renewed_at >= victim.expires_at
              AND ($2 IS NOT NULL OR victim.token IS NULL
                   OR reaper.registered_at + victim.ttl_ms <= (extract(epoch FROM clock_timestamp()) * 1000)::bigint))
  AND ($2 IS NOT NULL OR pg_postmaster_start_time() + ttl_ms * interval '1 millisecond' <= clock_timestamp())
ORDER BY id;
