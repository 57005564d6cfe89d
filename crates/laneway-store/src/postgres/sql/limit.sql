-- Named limits.
SELECT name, value FROM limits WHERE name = ANY ($1);
