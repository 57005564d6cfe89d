-- Keeps documents once, whoever submits them.
INSERT INTO workflows (version, name, document, created_at) SELECT * FROM unnest($1, $2, $3, $4) ON CONFLICT DO NOTHING;
