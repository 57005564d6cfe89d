-- Forgets what was applied under a name. Runs, and the documents that they were made of, stay.
DELETE FROM definitions WHERE name = ?1;
