-- Of a run that goes. Along the primary key.
DELETE FROM needs_sets WHERE run_no = $1;
