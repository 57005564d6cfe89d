-- What expressions may see of one step.
SELECT status, output FROM tasks WHERE run_no = ?1 AND position = ?2;
