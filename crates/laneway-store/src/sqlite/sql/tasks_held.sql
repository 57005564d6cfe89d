-- Everything a session holds, but for runs that are set aside. What was only held ahead comes last: it never had a place,
-- and is told of when the places of the others are free. Index: tasks_held.
SELECT run_no, position, attempt, attempt + given_back FROM tasks
WHERE status = 'running' AND session = ?1 AND run_no NOT IN (SELECT run_no FROM quarantine)
ORDER BY run_no, is_ahead = 1 AND started_at IS NULL, position;
