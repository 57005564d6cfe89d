-- Chunks of a blob that is not complete yet. Who brings the same bytes brings the same chunks.
INSERT INTO blob_chunks (hash, no, bytes) SELECT $1, * FROM unnest($2, $3) ON CONFLICT DO NOTHING;
