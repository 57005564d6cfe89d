-- A named limit.
SELECT value FROM limits WHERE name = ?1;
