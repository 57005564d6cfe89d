-- A list is to be made anew.
DELETE FROM item_batches WHERE run_no = ?1 AND position = ?2;
