-- Keeps a trigger of an applied workflow. One that was there goes on where it was; a new one looks ahead only, and is paused if
-- those of the workflow are.
INSERT INTO triggers (workflow, key, version, source, ends, path, dealt_with, due_at, paused_by, paused_at)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, CASE WHEN ?4 IS NULL AND ?6 IS NULL AND pause.by IS NULL THEN ?7 END, pause.by, pause.at
FROM (SELECT min(paused_by) AS by, min(paused_at) AS at FROM triggers WHERE workflow = ?1) AS pause WHERE true
ON CONFLICT (workflow, key) DO UPDATE
SET version = excluded.version, ends = excluded.ends,
    due_at = CASE WHEN triggers.paused_by IS NULL THEN coalesce(triggers.due_at, excluded.due_at) END;
