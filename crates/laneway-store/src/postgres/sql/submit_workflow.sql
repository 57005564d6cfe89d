-- Keeps a document once, whoever submits it.
INSERT INTO workflows (version, name, document, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING;
