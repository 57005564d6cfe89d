-- Adds limits that a document declares and the store lacks. By name: two documents that declare the
-- same ones wait for each other in one direction only.
INSERT INTO limits (name, value, set_by, set_at)
SELECT name, value, $3, $4 FROM unnest($1, $2) AS declared (name, value) ORDER BY name
ON CONFLICT DO NOTHING;
