-- Countdowns of a run that goes.
DELETE FROM needs_sets WHERE run_no = ?1;
