-- The reaper returns the claim of a dead session: pending again, its gates to be looked at anew.
UPDATE tasks
SET status = 'pending', gate = 'needs', session = NULL, is_ahead = 0, stop = NULL, rank = NULL,
    node = ?5, reason = 'lost', detail = NULL, exit_code = NULL, took_ms = NULL, lost = lost + 1
WHERE run_no = ?1 AND position = ?2 AND attempt = ?3 AND session = ?4 AND status = 'running';
