-- Who listens at a path. Index: triggers_by_path.
SELECT workflow, key, version, dealt_with, due_at, paused_by, paused_at, fired_at, fired_run, fault
FROM triggers WHERE path = ?1;
