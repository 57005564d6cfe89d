-- Whether the process of a session starts what schedules and other triggers are due (docs/design/triggers.md).
ALTER TABLE sessions ADD COLUMN fires BOOLEAN NOT NULL DEFAULT false;

-- Names under which workflows were applied that were removed, and when: what ran before that starts by its name no more.
CREATE TABLE removed_workflows (
    name       TEXT PRIMARY KEY,
    removed_at BIGINT NOT NULL
);
