-- Holders of the run's `max_parallel`, counted from live tasks. Index: tasks_live.
SELECT count(*) FROM tasks WHERE run_no = ?1 AND status IN ('available', 'running');
