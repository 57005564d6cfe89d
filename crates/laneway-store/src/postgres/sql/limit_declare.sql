-- Limits that a document declares and nobody has made yet.
INSERT INTO limits (name, value, set_by, set_at) SELECT name, value, $3, $4 FROM unnest($1, $2) AS declared (name, value)
ON CONFLICT DO NOTHING;
