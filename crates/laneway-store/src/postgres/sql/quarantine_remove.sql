-- Takes a run out of the quarantine. The run is locked.
DELETE FROM quarantine WHERE run_no = $1;
