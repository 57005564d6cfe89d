-- Of a run that goes. Along the primary key.
DELETE FROM layer_files WHERE run_no = $1;
