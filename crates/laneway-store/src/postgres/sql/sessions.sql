-- Every session that nobody has reaped, and what it holds. Index: tasks_held.
SELECT id, node, (SELECT count(*) FROM tasks WHERE status = 'running' AND session = sessions.id) AS held, expires_at
FROM sessions ORDER BY id;
