-- Whether the process of a session starts what schedules and other triggers are due (docs/design/triggers.md).
ALTER TABLE sessions ADD COLUMN fires INTEGER NOT NULL DEFAULT 0 CHECK (fires IN (0, 1));

-- Names under which workflows were applied that were removed, and when: what ran before that starts by its name no more.
CREATE TABLE removed_workflows (
    name       TEXT PRIMARY KEY,
    removed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
