-- When the first who waits at a key is woken. Index: tasks_at_key.
SELECT min(wake_at) FROM tasks WHERE gate_key = $1;
