-- Of a run that goes. Along the primary key.
DELETE FROM log_chunks WHERE run_no = $1;
