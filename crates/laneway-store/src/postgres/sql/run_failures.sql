-- The first failure of runs, and how many there are. Of items their step tells. Along the primary key.
SELECT DISTINCT ON (run_no) run_no, position, reason, detail, finished_at, count(*) OVER (PARTITION BY run_no)
FROM tasks WHERE run_no = ANY ($1) AND status = 'failed' AND item IS NULL ORDER BY run_no, finished_at, position;
