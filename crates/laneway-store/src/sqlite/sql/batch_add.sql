-- Keeps items of a step until they are tasks.
INSERT INTO item_batches (run_no, position, no, items) VALUES (?1, ?2, ?3, ?4);
