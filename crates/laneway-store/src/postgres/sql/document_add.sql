-- Keeps a document once, whoever applies it. The moment is the database's, unless the caller has its own.
INSERT INTO workflows (version, name, document, created_at)
VALUES ($1, $2, $3, coalesce($4::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)) ON CONFLICT DO NOTHING;
