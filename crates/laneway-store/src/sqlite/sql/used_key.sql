-- The run that was submitted with a key and is gone.
SELECT run FROM used_keys WHERE key = ?1;
