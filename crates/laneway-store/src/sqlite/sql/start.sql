-- The holder of a claim says that it has started. Zero rows: not its claim any more, or said before.
-- The mark of a claim ahead stays until the end, so that this can return it.
UPDATE tasks
SET started_at = ?5, node = ?6
WHERE run_no = ?1 AND position = ?2 AND attempt = ?3 AND session = ?4 AND status = 'running'
  AND started_at IS NULL
RETURNING is_ahead;
