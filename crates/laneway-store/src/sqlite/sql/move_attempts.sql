-- Attempts of a run, also the last one of each task that has not ended.
SELECT position, attempt FROM attempts WHERE run_no = ?1
UNION
SELECT position, attempt FROM tasks WHERE run_no = ?1 AND attempt > 0
ORDER BY 1, 2;
