-- What a session is asked to stop, and whether its run is set aside. Index: tasks_stopping.
SELECT run_no, position, attempt, stop, run_no IN (SELECT run_no FROM quarantine), attempt + given_back
FROM tasks WHERE stop IS NOT NULL AND session = ?1;
