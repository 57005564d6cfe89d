-- Whether somebody waits at a key who comes before a task. Index: tasks_at_key.
SELECT 1 FROM tasks
WHERE gate_key = ?1 AND (rank, run_no, position) < (?2, ?3, ?4) AND run_no NOT IN (SELECT run_no FROM quarantine) LIMIT 1;
