-- Countdowns of runs whose submit did not come to its end. Index: runs_owned.
DELETE FROM needs_sets WHERE run_no IN (SELECT no FROM runs WHERE owner = ?1 AND is_visible = 0);
