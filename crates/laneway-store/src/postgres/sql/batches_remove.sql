-- Lists are to be made anew.
DELETE FROM item_batches USING unnest($1, $2) AS gone (run_no, position)
WHERE item_batches.run_no = gone.run_no AND item_batches.position = gone.position;
