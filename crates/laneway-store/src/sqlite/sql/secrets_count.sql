-- How many secrets there are.
SELECT count(*) FROM secrets;
