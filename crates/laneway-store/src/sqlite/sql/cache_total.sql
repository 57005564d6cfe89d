-- What all results take up.
SELECT coalesce(sum(bytes), 0) FROM cache;
