-- How many tasks of a run are in which state.
SELECT status, count(*) FROM tasks WHERE run_no = ?1 GROUP BY status;
