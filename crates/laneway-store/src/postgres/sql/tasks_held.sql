-- Everything a session holds, but for runs that are set aside. Index: tasks_held.
SELECT run_no, runs.id, position, attempt FROM tasks JOIN runs ON runs.no = tasks.run_no
WHERE tasks.status = 'running' AND session = $1 AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
ORDER BY run_no, position;
