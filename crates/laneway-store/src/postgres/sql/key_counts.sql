-- How many tasks hold a key, and how many wait at it. Locks nothing. Index: tasks_at_key.
SELECT (SELECT count(*) FROM holds WHERE key = $1), (SELECT count(*) FROM tasks WHERE gate_key = $1);
