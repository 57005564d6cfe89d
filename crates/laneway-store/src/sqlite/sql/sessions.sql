-- Every session that nobody has reaped.
SELECT id, node, (SELECT count(*) FROM tasks WHERE status = 'running' AND session = sessions.id) AS held
FROM sessions ORDER BY id;
