-- Of a run that goes. Along the primary key.
DELETE FROM events WHERE run_no = $1;
