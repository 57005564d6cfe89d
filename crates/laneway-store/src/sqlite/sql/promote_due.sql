-- Tasks whose `run_at` has passed, but for runs that are set aside. Index: tasks_timed.
SELECT run_no, position FROM tasks
WHERE gate = 'run_at' AND run_at <= ?1 AND run_no NOT IN (SELECT run_no FROM quarantine)
ORDER BY run_at LIMIT 1000;
