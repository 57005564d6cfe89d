-- What a session is asked to stop. Index: tasks_stopping.
SELECT run_no, position, attempt, stop FROM tasks WHERE stop IS NOT NULL AND session = ?1;
