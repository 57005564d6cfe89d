-- Some of the attempts of a run that goes, by position. Along the primary key.
DELETE FROM attempts WHERE run_no = ?1 AND position < ?2;
