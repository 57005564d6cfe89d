-- Some of what a session holds, oldest first. Index: tasks_held.
SELECT runs.id, tasks.position, tasks.attempt, tasks.started_at
FROM tasks JOIN runs ON runs.no = tasks.run_no
WHERE tasks.status = 'running' AND tasks.session = $1
ORDER BY tasks.started_at NULLS LAST, tasks.run_no, tasks.position LIMIT $2;
