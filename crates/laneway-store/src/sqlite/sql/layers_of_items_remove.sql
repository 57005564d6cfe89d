-- Layers of items that are gone with their list. Along the primary key.
DELETE FROM layers WHERE run_no = ?1 AND position >= ?2 AND position < ?3;
