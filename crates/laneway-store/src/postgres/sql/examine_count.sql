-- How many runs there are.
SELECT count(*) FROM runs WHERE is_visible;
