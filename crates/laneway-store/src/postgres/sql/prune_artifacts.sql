-- Of a run that goes. Along the primary key.
DELETE FROM artifacts WHERE run_no = $1;
