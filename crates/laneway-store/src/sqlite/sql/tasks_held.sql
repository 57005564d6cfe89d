-- Everything a session holds. Index: tasks_held.
SELECT run_no, position, attempt FROM tasks WHERE status = 'running' AND session = ?1 ORDER BY run_no, position;
