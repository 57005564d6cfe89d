-- A run that nobody has seen.
DELETE FROM runs WHERE no = ?1 AND is_visible = 0;
