-- Items of steps that are yet to be tasks. Along the primary key.
SELECT run_no, position, no, items
FROM item_batches JOIN unnest($1, $2, $3) AS wanted (run_no, position, no) USING (run_no, position, no);
