-- Who holds a key, oldest first.
SELECT runs.id, tasks.position, tasks.status, tasks.node, tasks.started_at, runs.workflow, runs.version
FROM holds
JOIN tasks ON tasks.run_no = holds.run_no AND tasks.position = holds.position
JOIN runs ON runs.no = holds.run_no
WHERE holds.key = $1 ORDER BY tasks.started_at NULLS LAST, holds.run_no, holds.position LIMIT $2;
