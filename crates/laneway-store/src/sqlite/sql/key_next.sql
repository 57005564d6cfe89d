-- Who waits longest at a key, of all runs but those that are set aside. Index: tasks_at_key.
SELECT run_no, position FROM tasks
WHERE gate_key = ?1 AND run_no NOT IN (SELECT run_no FROM quarantine)
ORDER BY rank, run_no, position LIMIT 1;
