-- They are tasks now.
DELETE FROM item_batches WHERE run_no = ?1 AND position = ?2 AND no = ?3;
