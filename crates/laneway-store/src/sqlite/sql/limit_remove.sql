-- Removes a named limit.
DELETE FROM limits WHERE name = ?1;
