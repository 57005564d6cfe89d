-- A person lets a run go on past a failed step.
UPDATE tasks
SET status = 'skipped', reason = 'skipped_by_person', detail = ?3, finished_at = ?4, run_at = NULL
WHERE run_no = ?1 AND position = ?2 AND status = 'failed';
