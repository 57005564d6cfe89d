-- Tasks whose `run_at` has passed. Index: tasks_timed.
SELECT run_no, position FROM tasks WHERE gate = 'run_at' AND run_at <= ?1 ORDER BY run_at LIMIT 1000;
