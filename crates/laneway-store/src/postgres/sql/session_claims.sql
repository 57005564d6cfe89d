-- Everything a session holds, also of runs that are set aside, and whether they are. Index: tasks_held.
SELECT run_no, runs.id, position, attempt, attempt + given_back, EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
FROM tasks JOIN runs ON runs.no = tasks.run_no
WHERE tasks.status = 'running' AND session = $1;
