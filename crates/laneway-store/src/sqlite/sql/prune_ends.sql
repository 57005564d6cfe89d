-- The first and the last number of all runs.
SELECT coalesce((SELECT min(no) FROM runs), 0), coalesce((SELECT max(no) FROM runs), -1);
