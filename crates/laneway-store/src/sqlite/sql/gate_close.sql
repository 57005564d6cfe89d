-- Notes which gate a pending task waits for; the full cause is computed when it is read.
UPDATE tasks SET gate = ?3, rank = ?4 WHERE run_no = ?1 AND position = ?2 AND status = 'pending';
