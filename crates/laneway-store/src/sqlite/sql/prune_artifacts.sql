-- Some of the artifacts of a run that goes, by position. Along the primary key.
DELETE FROM artifacts WHERE run_no = ?1 AND position < ?2;
