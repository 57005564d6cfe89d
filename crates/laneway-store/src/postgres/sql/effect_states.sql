-- The effects of a run, as its history tells them. Along the primary key.
SELECT position, name, key, status, attempt, exit_code, settled_by FROM effects WHERE run_no = $1
ORDER BY position, name, key;
