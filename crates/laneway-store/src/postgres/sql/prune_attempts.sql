-- Of a run that goes. Along the primary key.
DELETE FROM attempts WHERE run_no = $1;
