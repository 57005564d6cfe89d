-- Files of layers of items that are gone with their list. Along the primary key.
DELETE FROM layer_files WHERE run_no = ?1 AND position >= ?2 AND position < ?3;
