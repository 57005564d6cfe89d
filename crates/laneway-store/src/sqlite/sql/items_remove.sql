-- The items of a step are gone with its list, along the primary key. Nobody holds one: the run had ended.
DELETE FROM tasks WHERE run_no = ?1 AND position >= ?2 AND position < ?3 AND item IS NOT NULL;
