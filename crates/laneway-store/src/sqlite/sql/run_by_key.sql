-- The run that was submitted with a key, whether it is complete, and what a submission with that key is compared with.
-- Index: runs_by_key.
SELECT id, is_visible, workflow, version, params FROM runs WHERE key = ?1;
