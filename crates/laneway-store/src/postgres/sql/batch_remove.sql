-- They are tasks now.
DELETE FROM item_batches USING unnest($1, $2, $3) AS gone (run_no, position, no)
WHERE item_batches.run_no = gone.run_no AND item_batches.position = gone.position AND item_batches.no = gone.no;
