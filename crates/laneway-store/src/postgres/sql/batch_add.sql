-- Keeps items of steps until they are tasks.
INSERT INTO item_batches (run_no, position, no, items) SELECT * FROM unnest($1, $2, $3, $4);
