SELECT position, status, reason FROM tasks WHERE run_no = ?1 ORDER BY position;
