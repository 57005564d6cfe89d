-- Tasks that are claimed. Index: tasks_held.
SELECT count(*) FROM tasks WHERE status = 'running' AND session IS NOT NULL;
