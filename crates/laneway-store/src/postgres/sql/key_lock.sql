-- Locks keys, in the one order of all verbs, behind the runs. Holders are counted in the next statement: in this one they
-- would be as of before the wait, and a key would be over-granted.
SELECT name FROM keys WHERE name = ANY ($1) ORDER BY name FOR UPDATE;
