-- name: task_states
-- Returns the stored tasks in plan order, for comparison with a replay of the run's history.
SELECT position, status, attempt, node, reason, detail, exit_code, output, run_at, started_at, finished_at,
       retries, lost, took_ms, is_ahead, wait, growth, item
FROM tasks WHERE run_no = $1 ORDER BY position;
