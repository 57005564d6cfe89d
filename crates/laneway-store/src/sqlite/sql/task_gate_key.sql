-- The key at which a task waits.
SELECT gate_key FROM tasks WHERE run_no = ?1 AND position = ?2;
