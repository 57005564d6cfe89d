-- Which gate each task of a run waits for, in the order of the plan. Along the primary key.
SELECT CASE WHEN is_ahead AND started_at IS NULL THEN 'max_parallel' ELSE gate END, class, wake_at, gate_key, position, item
FROM tasks WHERE run_no = $1 ORDER BY position;
