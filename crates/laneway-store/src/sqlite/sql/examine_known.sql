-- Whether there is a run of this id, complete or not.
SELECT 1 FROM runs WHERE id = ?1;
