-- Some of a run that goes, by position. Along the primary key.
DELETE FROM cache_misses WHERE run_no = ?1 AND position < ?2;
