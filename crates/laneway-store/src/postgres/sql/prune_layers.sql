-- Of a run that goes. Along the primary key.
DELETE FROM layers WHERE run_no = $1;
