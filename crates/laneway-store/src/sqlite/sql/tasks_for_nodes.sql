-- Tasks of a class that nobody could run, but for runs that are set aside. Index: tasks_for_nodes.
SELECT run_no, position FROM tasks
WHERE gate = 'node' AND class = ?1 AND run_no NOT IN (SELECT run_no FROM quarantine)
ORDER BY run_no, rank, position;
