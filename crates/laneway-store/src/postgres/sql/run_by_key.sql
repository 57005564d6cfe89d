-- The run that was submitted with a key, and of which workflow it is, also if it is gone, and then nobody knows of which: one moment for
-- both, since it goes from one to the other.
SELECT id, workflow FROM runs WHERE key = $1
UNION ALL SELECT run, NULL FROM used_keys WHERE key = $1;
