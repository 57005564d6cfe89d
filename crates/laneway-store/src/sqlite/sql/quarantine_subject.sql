-- The number of a run that people can see; one that is being submitted is no case for the quarantine.
SELECT no FROM runs WHERE id = ?1 AND is_visible = 1;
