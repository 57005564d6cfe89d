-- Whether somebody else waits at a key and will be woken for it. Index: tasks_at_key.
SELECT 1 FROM tasks WHERE gate_key = ?1 AND wake_at IS NOT NULL AND NOT (run_no = ?2 AND position = ?3) LIMIT 1;
