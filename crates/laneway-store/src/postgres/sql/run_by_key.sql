-- The run that was submitted with a key. Index: runs_by_key.
SELECT id FROM runs WHERE key = $1;
