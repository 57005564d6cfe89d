-- How many tasks of a run are in which state, of ?2 of them. A claim that has not started is what it was before. Along the primary key.
SELECT CASE WHEN status <> 'running' OR started_at IS NOT NULL THEN status
            WHEN is_ahead = 1 THEN 'pending'
            ELSE 'available' END,
       count(*)
FROM (SELECT status, started_at, is_ahead FROM tasks WHERE run_no = ?1 LIMIT ?2) GROUP BY 1;
