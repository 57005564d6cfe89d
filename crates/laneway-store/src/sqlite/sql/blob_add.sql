-- Completes a blob: all of its chunks are there. Who came second finds it complete.
INSERT INTO blobs (hash, size, created_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;
