-- A blob whose chunks are to come. Who brings the same bytes brings the same chunks.
INSERT INTO blobs (hash, size, touched_at)
VALUES ($1, $2, coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint))
ON CONFLICT (hash) DO UPDATE SET touched_at = excluded.touched_at;
