-- The status of a run that can be seen.
SELECT status FROM runs WHERE id = $1 AND is_visible;
