-- Everything a session holds, but for runs that are set aside. What was only held ahead comes last: it never had a place,
-- and is told of when the places of the others are free. Index: tasks_held.
SELECT run_no, runs.id, position, attempt, attempt + given_back FROM tasks JOIN runs ON runs.no = tasks.run_no
WHERE tasks.status = 'running' AND session = $1 AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
ORDER BY run_no, is_ahead AND tasks.started_at IS NULL, position;
