-- Some of the tasks of a run that goes, by position. Along the primary key.
DELETE FROM tasks WHERE run_no = ?1 AND position < ?2;
