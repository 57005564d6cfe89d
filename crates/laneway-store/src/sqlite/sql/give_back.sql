-- Returns a claim that was never started. It keeps its rank, so it is next in line again.
UPDATE tasks
SET status = 'available', session = NULL, stop = NULL
WHERE run_no = ?1 AND position = ?2 AND attempt = ?3 AND session = ?4 AND status = 'running'
  AND started_at IS NULL;
