-- The value of an item.
SELECT item FROM tasks WHERE run_no = ?1 AND position = ?2;
