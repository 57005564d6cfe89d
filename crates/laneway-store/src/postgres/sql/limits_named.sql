-- Limits that a submission names. They are not removed before its end.
SELECT name, value FROM limits WHERE name = ANY ($1) ORDER BY name FOR KEY SHARE;
