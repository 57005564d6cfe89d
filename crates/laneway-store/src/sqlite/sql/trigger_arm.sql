-- Keeps a trigger of an applied workflow. One that was there goes on where it was; a new one looks ahead only.
INSERT INTO triggers (workflow, key, version, source, ends, dealt_with, due_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, CASE WHEN ?4 IS NULL THEN ?6 END)
ON CONFLICT (workflow, key) DO UPDATE
SET version = excluded.version, ends = excluded.ends,
    due_at = CASE WHEN triggers.paused_by IS NULL THEN coalesce(triggers.due_at, excluded.due_at) END;
