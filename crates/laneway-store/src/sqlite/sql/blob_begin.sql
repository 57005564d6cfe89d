-- A blob whose chunks are to come. Who brings the same bytes brings the same chunks.
INSERT INTO blobs (hash, size, touched_at) VALUES (?1, ?2, ?3)
ON CONFLICT (hash) DO UPDATE SET touched_at = excluded.touched_at;
