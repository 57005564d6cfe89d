-- Everything a session holds, but for runs that are set aside. Index: tasks_held.
SELECT run_no, position, attempt FROM tasks
WHERE status = 'running' AND session = ?1 AND run_no NOT IN (SELECT run_no FROM quarantine)
ORDER BY run_no, position;
