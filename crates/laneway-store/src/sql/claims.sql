-- name: attempts
-- Returns the ended attempts of a task, and the attempt that is running.
SELECT attempt, node, outcome, reason, detail, exit_code, started_at, finished_at, took_ms, attempt + given_back
FROM attempts WHERE run_no = $1 AND position = $2
UNION ALL
SELECT attempt, node, 'running', NULL, NULL, NULL, started_at, NULL, NULL, attempt + given_back
FROM tasks WHERE run_no = $1 AND position = $2 AND status = 'running' AND started_at IS NOT NULL
ORDER BY 1;

-- name: fence
-- Returns the fencing token of a claim. No row: the claim is no longer held. Uses the primary key.
SELECT fence FROM tasks
WHERE run_no = $1 AND position = $2 AND status = 'running' AND attempt + given_back = $3 AND session = $4;
