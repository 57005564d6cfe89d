-- The run that was submitted with a key, and what a submission with that key is compared with. Of a run that was removed
-- only the id is known. One statement for both tables, since a key goes from one to the other.
SELECT id, workflow, version, params FROM runs WHERE key = $1
UNION ALL SELECT run, NULL, NULL, NULL FROM used_keys WHERE key = $1;
