-- A row for each key that has none yet: what is locked before its holders are counted.
INSERT INTO keys (name) SELECT unnest($1) ON CONFLICT DO NOTHING;
