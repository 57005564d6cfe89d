-- The first failure of a run, and how many there are. Of items their step tells.
SELECT position, reason, detail, count(*) OVER (), finished_at FROM tasks
WHERE run_no = ?1 AND status = 'failed' AND item IS NULL ORDER BY finished_at, position LIMIT 1;
