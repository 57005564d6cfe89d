-- Everything a session holds, also of runs that are set aside. Index: tasks_held.
SELECT run_no, runs.id, position, attempt FROM tasks JOIN runs ON runs.no = tasks.run_no
WHERE tasks.status = 'running' AND session = $1;
