-- The id of a run by its number in this file.
SELECT id FROM runs WHERE no = ?1;
