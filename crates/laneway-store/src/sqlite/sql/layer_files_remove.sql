-- Files of an earlier layer of a task. Along the primary key.
DELETE FROM layer_files WHERE run_no = ?1 AND position = ?2;
