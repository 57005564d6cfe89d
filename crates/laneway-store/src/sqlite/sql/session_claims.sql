-- Everything a session holds, also of runs that are set aside. Index: tasks_held.
SELECT run_no, position, attempt FROM tasks WHERE status = 'running' AND session = ?1 ORDER BY run_no, position;
