-- The run that was submitted with a key, and whether it is complete. Index: runs_by_key.
SELECT id, is_visible FROM runs WHERE key = ?1;
