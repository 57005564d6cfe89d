-- The stored side of a replay: its tasks, in the order of the plan.
SELECT position, status, attempt, node, reason, detail, exit_code, output, run_at, started_at, finished_at,
       retries, lost, took_ms, is_ahead, wait, growth, item
FROM tasks WHERE run_no = $1 ORDER BY position;
