-- Items of a step that are yet to be tasks.
SELECT items FROM item_batches WHERE run_no = ?1 AND position = ?2 AND no = ?3;
