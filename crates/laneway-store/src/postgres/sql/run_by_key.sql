-- The run that was submitted with a key, also if it is gone: one moment for both, since it goes from one to the other.
SELECT id FROM runs WHERE key = $1
UNION ALL SELECT run FROM used_keys WHERE key = $1;
