-- How many tasks of a run are in which state. A claim that has not started is what it was before. A step whose
-- items failed is not counted beside these: each failure counts once. With the first start of what is executed, and more than 1
-- where a task had an attempt before the one that its row tells of.
SELECT CASE WHEN status <> 'running' OR started_at IS NOT NULL THEN status
            WHEN is_ahead = 1 THEN 'pending'
            ELSE 'available' END,
       count(*) FILTER (WHERE NOT (status = 'failed' AND reason IS 'items')),
       min(started_at) FILTER (WHERE wait IS NULL AND growth IS NULL), max(attempt + CASE WHEN started_at IS NULL THEN 1 ELSE 0 END),
       count(*)
FROM tasks WHERE run_no = ?1 GROUP BY 1;
