-- What a halt or a cancel reaches at once: tasks that nobody holds.
SELECT position, status, attempt FROM tasks
WHERE run_no = ?1 AND status IN ('pending', 'available') ORDER BY position;
