-- How every task of a run has ended, for whoever opens the run again.
SELECT position, status, reason FROM tasks WHERE run_no = ?1 ORDER BY position;
