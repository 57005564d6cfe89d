-- What a session is asked to stop, with the ids of the runs, and whether they are set aside. Index: tasks_stopping.
SELECT run_no, runs.id, position, attempt, attempt + given_back, stop,
       EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
FROM tasks JOIN runs ON runs.no = tasks.run_no
WHERE stop IS NOT NULL AND session = $1 ORDER BY run_no, position;
