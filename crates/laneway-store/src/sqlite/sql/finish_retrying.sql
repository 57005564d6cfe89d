-- The end of an attempt that will be followed by another, not before ?8. Zero rows: claim lost.
UPDATE tasks
SET status = 'pending', gate = 'run_at', session = NULL, is_ahead = 0, stop = NULL, rank = NULL,
    reason = ?5, detail = ?6, exit_code = ?7, retries = retries + 1, run_at = ?8, took_ms = ?9,
    started_at = coalesce(started_at, ?10), node = coalesce(node, ?11)
WHERE run_no = ?1 AND position = ?2 AND attempt = ?3 AND session = ?4 AND status = 'running';
