-- Everything such a session holds, and since when. Index: tasks_held.
SELECT run_no, position, attempt, started_at, attempt + given_back FROM tasks
WHERE status = 'running' AND session = ?1 ORDER BY run_no, position;
