-- Needs sets of a run that nobody has seen.
DELETE FROM needs_sets WHERE run_no = ?1 AND EXISTS (SELECT 1 FROM runs WHERE no = ?1 AND is_visible = 0);
