-- Pending again, as if new but for the attempt number, which never goes back.
UPDATE tasks
SET status = 'pending', gate = 'needs', rank = NULL, run_at = NULL, retries = 0, lost = 0, node = NULL,
    reason = NULL, detail = NULL, exit_code = NULL, took_ms = NULL, output = NULL, started_at = NULL, finished_at = NULL
WHERE run_no = ?1 AND position = ?2;
