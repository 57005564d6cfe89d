-- The gate keeper opens a task's gates: the only statement that makes a task available.
-- What its last attempt said stands in that attempt's record; an available task looks forward.
UPDATE tasks
SET status = 'available', gate = NULL, rank = coalesce(rank, ?3), run_at = NULL,
    node = NULL, reason = NULL, detail = NULL, exit_code = NULL, took_ms = NULL, started_at = NULL
WHERE run_no = ?1 AND position = ?2 AND status = 'pending';
