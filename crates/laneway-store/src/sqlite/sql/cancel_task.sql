-- A task of a canceled run that was not running.
UPDATE tasks
SET status = 'canceled', gate = NULL, rank = NULL, run_at = NULL,
    reason = ?3, detail = NULL, exit_code = NULL, output = NULL, took_ms = NULL, finished_at = ?4
WHERE run_no = ?1 AND position = ?2 AND status IN ('pending', 'available');
