-- Tasks of some runs that wait for something but what they need, with what orders them: their rank, or since when they are parked; the
-- $3 that have waited longest. Of each run its first $2, $2 that are available or run, the first $3 that are parked, and $3 that wait for
-- a place in it. Locks nothing. Index: tasks_parked, tasks_live, tasks_waiting. Along the primary key.
SELECT run.no, task.position, task.status, task.gate, task.gate_key,
       CASE WHEN task.status = 'parked' THEN task.started_at ELSE task.rank END AS waits_by
FROM unnest($1) AS run (no)
CROSS JOIN LATERAL (
    (SELECT position, status, gate, gate_key, wait, started_at, rank FROM tasks WHERE run_no = run.no ORDER BY position LIMIT $2)
    UNION
    (SELECT position, status, gate, gate_key, wait, started_at, rank FROM tasks WHERE run_no = run.no AND status IN ('available', 'running') LIMIT $2)
    UNION
    (SELECT position, status, gate, gate_key, wait, started_at, rank FROM tasks WHERE run_no = run.no AND status = 'parked' ORDER BY position LIMIT $3)
    UNION
    (SELECT position, status, gate, gate_key, wait, started_at, rank FROM tasks WHERE run_no = run.no AND gate = 'max_parallel' ORDER BY rank, position LIMIT $3)
) AS task
WHERE CASE task.status
          WHEN 'parked' THEN task.wait IS NOT NULL AND task.started_at IS NOT NULL
          WHEN 'available' THEN task.rank IS NOT NULL
          WHEN 'pending' THEN task.rank IS NOT NULL AND task.gate NOT IN ('needs', 'run_at', 'group', 'level')
          ELSE false END
ORDER BY waits_by, run.no, task.position LIMIT $3;
