-- Some of the effects of a run that goes, by position. Along the primary key.
DELETE FROM effects WHERE run_no = ?1 AND position < ?2;
