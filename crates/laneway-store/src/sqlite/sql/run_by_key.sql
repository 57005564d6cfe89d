-- The run that was submitted with a key, whether it is complete, and of which workflow it is. Index: runs_by_key.
SELECT id, is_visible, workflow FROM runs WHERE key = ?1;
