-- Schedules whose moment has come, oldest first. Index: triggers_due.
SELECT workflow, key, version, dealt_with, due_at, paused_by, paused_at, fired_at, fired_run, fault
FROM triggers WHERE due_at <= $1 ORDER BY due_at, workflow, key LIMIT $2;
