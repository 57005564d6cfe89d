-- Who waits at a key, the next one first. Locks nothing. Index: tasks_at_key.
SELECT runs.id, tasks.position, tasks.status, tasks.node, tasks.started_at, runs.workflow, runs.version, tasks.rank
FROM tasks JOIN runs ON runs.no = tasks.run_no
WHERE tasks.gate_key = $1 ORDER BY tasks.rank, tasks.run_no, tasks.position LIMIT $2;
