-- Items of a run that never became tasks.
DELETE FROM item_batches WHERE run_no = ?1;
