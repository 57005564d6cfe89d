-- Everything such a session holds, and since when. Index: tasks_held.
SELECT run_no, runs.id, position, attempt, attempt + given_back, tasks.started_at FROM tasks JOIN runs ON runs.no = tasks.run_no
WHERE tasks.status = 'running' AND session = $1 ORDER BY run_no, position;
