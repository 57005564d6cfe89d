-- Some of the layers of a run that goes, by position. Along the primary key.
DELETE FROM layers WHERE run_no = ?1 AND position < ?2;
