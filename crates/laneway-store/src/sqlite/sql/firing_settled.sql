-- The owner of a run that has ended has seen to its hooks: from here on it is nobody's.
UPDATE runs SET owner = NULL WHERE id = ?1 AND finished_at IS NOT NULL AND owner IS NOT NULL;
