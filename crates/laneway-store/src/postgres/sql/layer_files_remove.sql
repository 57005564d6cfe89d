-- Files of earlier layers of tasks. Along the primary key.
DELETE FROM layer_files USING unnest($1, $2) AS gone (run_no, position)
WHERE layer_files.run_no = gone.run_no AND layer_files.position = gone.position;
