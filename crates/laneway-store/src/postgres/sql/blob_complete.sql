-- Completes a blob, if all of its chunks are there: it may have been swept while they came.
UPDATE blobs SET is_whole = true, touched_at = coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
WHERE hash = $1 AND (SELECT count(*) FROM blob_chunks WHERE blob_chunks.hash = $1) = $2
RETURNING 1;
