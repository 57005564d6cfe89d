-- Of a run that goes. Along the primary key.
DELETE FROM tasks WHERE run_no = $1;
