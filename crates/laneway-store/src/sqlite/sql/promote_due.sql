-- Tasks that are to be looked at by now, but for runs that are set aside. Index: tasks_timed.
SELECT run_no, position FROM tasks
WHERE wake_at IS NOT NULL AND wake_at <= ?1 AND run_no NOT IN (SELECT run_no FROM quarantine)
ORDER BY wake_at LIMIT 1000;
