-- The values of some items. Along the primary key.
SELECT position, item FROM tasks WHERE run_no = $1 AND position = ANY ($2) ORDER BY position;
