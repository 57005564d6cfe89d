-- How many tasks of some runs are in which state, of $2 of each. A claim that has not started is what it was before. A step
-- whose items failed is not counted beside these: each failure counts once. With the first start of what is executed, and more than 1
-- where a task had an attempt before the one that its row tells of.
-- Along the primary key. Locks nothing.
SELECT run.no,
       CASE WHEN task.status <> 'running' OR task.started_at IS NOT NULL THEN task.status
            WHEN task.is_ahead THEN 'pending'
            ELSE 'available' END,
       count(*) FILTER (WHERE NOT (task.status = 'failed' AND task.reason IS NOT DISTINCT FROM 'items')),
       min(task.started_at) FILTER (WHERE task.wait IS NULL AND task.growth IS NULL), max(task.attempt + CASE WHEN task.started_at IS NULL THEN 1 ELSE 0 END),
       count(*)
FROM unnest($1) AS run (no)
CROSS JOIN LATERAL (SELECT status, reason, started_at, is_ahead, wait, growth, attempt FROM tasks WHERE run_no = run.no LIMIT $2) AS task
GROUP BY 1, 2;
