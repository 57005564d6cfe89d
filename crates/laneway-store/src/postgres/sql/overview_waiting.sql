-- Tasks of the oldest $1 runs that have not ended and are not set aside, of the first $2 of each, which wait for something but what
-- they need; with what orders them: their rank, or since when they are parked. Longest first. Locks nothing.
-- Index: runs_unfinished; along the primary key.
SELECT run.id, task.position, task.status, task.gate, task.gate_key, task.waits_by
FROM (
    SELECT no, id FROM runs
    WHERE status IN ('queued', 'running') AND is_visible AND no NOT IN (SELECT run_no FROM quarantine)
    ORDER BY no LIMIT $1
) AS run
CROSS JOIN LATERAL (
    SELECT *, CASE WHEN status = 'parked' THEN started_at ELSE rank END AS waits_by
    FROM tasks WHERE run_no = run.no ORDER BY position LIMIT $2
) AS task
WHERE CASE task.status
          WHEN 'parked' THEN task.wait IS NOT NULL AND task.started_at IS NOT NULL
          WHEN 'available' THEN task.rank IS NOT NULL
          WHEN 'pending' THEN task.rank IS NOT NULL AND task.gate NOT IN ('needs', 'run_at', 'group', 'level')
          ELSE false END
ORDER BY task.waits_by, run.no, task.position LIMIT $3;
