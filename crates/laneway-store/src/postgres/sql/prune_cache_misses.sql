-- Of a run that goes. Along the primary key.
DELETE FROM cache_misses WHERE run_no = $1;
