-- Everything a session holds, also of runs that are set aside, and whether they are. Index: tasks_held.
SELECT run_no, position, attempt, run_no IN (SELECT run_no FROM quarantine), attempt + given_back
FROM tasks WHERE status = 'running' AND session = ?1 ORDER BY run_no, position;
