-- What a session is asked to stop, with the ids of the runs. Index: tasks_stopping.
SELECT runs.id, position, attempt, stop FROM tasks JOIN runs ON runs.no = tasks.run_no
WHERE stop IS NOT NULL AND session = $1 ORDER BY run_no, position;
