-- Some of the events of a run that goes, oldest first. Along the primary key.
DELETE FROM events WHERE run_no = ?1 AND seq <= ?2;
