-- Attempts of a task that have ended, and the one that is running.
SELECT attempt, node, outcome, reason, detail, exit_code, started_at, finished_at, took_ms, attempt + given_back
FROM attempts WHERE run_no = ?1 AND position = ?2
UNION ALL
SELECT attempt, node, 'running', NULL, NULL, NULL, started_at, NULL, NULL, attempt + given_back
FROM tasks WHERE run_no = ?1 AND position = ?2 AND status = 'running' AND started_at IS NOT NULL
ORDER BY 1;
