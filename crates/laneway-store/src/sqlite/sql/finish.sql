-- The end of a task by the holder of its claim, or by the reaper in its place. Zero rows: claim lost.
-- ?12 and ?13 are the start of an attempt that ended before its holder had said it.
UPDATE tasks
SET status = ?5, session = NULL, is_ahead = 0, stop = NULL, rank = NULL, run_at = NULL,
    reason = ?6, detail = ?7, exit_code = ?8, output = ?9, finished_at = ?10, took_ms = ?11,
    started_at = coalesce(started_at, ?12), node = coalesce(node, ?13)
WHERE run_no = ?1 AND position = ?2 AND attempt = ?3 AND session = ?4 AND status = 'running';
