-- A task holds a key no more.
DELETE FROM holds WHERE key = ?1 AND run_no = ?2 AND position = ?3;
