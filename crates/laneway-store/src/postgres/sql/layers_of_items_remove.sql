-- Layers of items that are gone with their lists, and their files. Along the primary keys.
WITH gone AS (SELECT * FROM unnest($1, $2, $3) AS gone (run_no, first, behind)),
     files AS (DELETE FROM layer_files USING gone WHERE layer_files.run_no = gone.run_no
               AND layer_files.position >= gone.first AND layer_files.position < gone.behind)
DELETE FROM layers USING gone
WHERE layers.run_no = gone.run_no AND layers.position >= gone.first AND layers.position < gone.behind;
