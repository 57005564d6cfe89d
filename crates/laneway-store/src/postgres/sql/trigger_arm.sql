-- Keeps the triggers of an applied workflow. One that was there goes on where it was; a new one looks ahead only, and is paused
-- if those of the workflow are.
WITH moment AS (SELECT coalesce($7::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now),
pause AS (SELECT min(paused_by) AS paused_by, min(paused_at) AS paused_at FROM triggers WHERE workflow = $1)
INSERT INTO triggers (workflow, key, version, source, ends, path, dealt_with, due_at, paused_by, paused_at)
SELECT $1, key, $3, source, ends, path, now,
       CASE WHEN source IS NULL AND path IS NULL AND paused_by IS NULL THEN now END, paused_by, paused_at
FROM unnest($2::text[], $4::text[], $5::text[], $6::text[]) AS armed (key, source, ends, path), moment, pause ORDER BY key
ON CONFLICT (workflow, key) DO UPDATE
SET version = excluded.version, ends = excluded.ends,
    due_at = CASE WHEN triggers.paused_by IS NULL THEN coalesce(triggers.due_at, excluded.due_at) END;
