-- A task that will never run.
UPDATE tasks
SET status = 'skipped', gate = NULL, rank = NULL, run_at = NULL, reason = ?3, detail = ?4, finished_at = ?5
WHERE run_no = ?1 AND position = ?2 AND status IN ('pending', 'available');
