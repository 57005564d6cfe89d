-- What expressions may see of some steps. Along the primary key.
SELECT position, status, output FROM tasks WHERE run_no = $1 AND position = ANY ($2) ORDER BY position;
