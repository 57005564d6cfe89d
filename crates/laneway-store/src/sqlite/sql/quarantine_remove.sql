-- Takes a run out of the quarantine.
DELETE FROM quarantine WHERE run_no = ?1;
