-- How many tasks of some runs are in which state. A claim that has not started is what it was before.
-- Along the primary key.
SELECT run_no,
       CASE WHEN status <> 'running' OR started_at IS NOT NULL THEN status
            WHEN is_ahead THEN 'pending'
            ELSE 'available' END,
       count(*)
FROM tasks WHERE run_no = ANY ($1) GROUP BY 1, 2;
