-- How many tasks of some runs are in which state, of $2 of each. A claim that has not started is what it was before.
-- Along the primary key. Locks nothing.
SELECT run.no,
       CASE WHEN task.status <> 'running' OR task.started_at IS NOT NULL THEN task.status
            WHEN task.is_ahead THEN 'pending'
            ELSE 'available' END,
       count(*)
FROM unnest($1) AS run (no)
CROSS JOIN LATERAL (SELECT status, started_at, is_ahead FROM tasks WHERE run_no = run.no LIMIT $2) AS task
GROUP BY 1, 2;
