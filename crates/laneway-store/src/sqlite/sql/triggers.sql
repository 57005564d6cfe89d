-- Every trigger.
SELECT workflow, key, version, dealt_with, due_at, paused_by, paused_at, fired_at, fired_run, fault
FROM triggers ORDER BY workflow, key;
