-- Of a run that goes. Along the primary key.
DELETE FROM run_bytes WHERE run_no = $1;
