-- Who waits longest at a key, of all runs but those that are set aside. Index: tasks_at_key.
SELECT run_no, runs.id, position FROM tasks JOIN runs ON runs.no = tasks.run_no
WHERE gate_key = $1 AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
ORDER BY rank, run_no, position LIMIT 1;
