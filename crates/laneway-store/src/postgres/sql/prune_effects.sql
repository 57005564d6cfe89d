-- Of a run that goes. Along the primary key.
DELETE FROM effects WHERE run_no = $1;
