-- Everybody who waits at a key, in line. Index: tasks_at_key.
SELECT run_no, position FROM tasks WHERE gate_key = $1 ORDER BY rank, run_no, position;
