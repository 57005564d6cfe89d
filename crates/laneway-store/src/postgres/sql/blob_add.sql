-- Completes a blob: all of its chunks are there. Who came second finds it complete.
INSERT INTO blobs (hash, size, created_at)
VALUES ($1, $2, coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)) ON CONFLICT DO NOTHING;
