-- The measure of a run that goes.
DELETE FROM run_bytes WHERE run_no = ?1;
