-- Returns a claim that was never started. It keeps its rank, so it is next in line again; one that was claimed ahead
-- waits for its place as before.
UPDATE tasks
SET status = CASE is_ahead WHEN 1 THEN 'pending' ELSE 'available' END,
    gate = CASE is_ahead WHEN 1 THEN 'max_parallel' END,
    session = NULL, is_ahead = 0, stop = NULL
WHERE run_no = ?1 AND position = ?2 AND attempt = ?3 AND session = ?4 AND status = 'running'
  AND started_at IS NULL;
