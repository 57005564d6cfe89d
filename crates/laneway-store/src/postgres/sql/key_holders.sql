-- How many tasks hold keys. They are locked.
SELECT key, count(*) FROM holds WHERE key = ANY ($1) GROUP BY key;
