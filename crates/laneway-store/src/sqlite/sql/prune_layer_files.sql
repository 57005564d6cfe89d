-- Some of the layer files of a run that goes, by position. Along the primary key.
DELETE FROM layer_files WHERE run_no = ?1 AND position < ?2;
