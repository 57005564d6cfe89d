-- Runs whose submit did not come to its end: nobody has seen them. Index: runs_owned.
DELETE FROM runs WHERE owner = ?1 AND is_visible = 0;
