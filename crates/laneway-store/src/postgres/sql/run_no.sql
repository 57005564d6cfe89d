-- The number of a run that can be seen.
SELECT no FROM runs WHERE id = $1 AND is_visible;
