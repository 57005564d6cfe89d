-- How many tasks of a run are in which state. A claim that has not started is what it was before.
SELECT CASE WHEN status <> 'running' OR started_at IS NOT NULL THEN status
            WHEN is_ahead = 1 THEN 'pending'
            ELSE 'available' END,
       count(*)
FROM tasks WHERE run_no = ?1 GROUP BY 1;
