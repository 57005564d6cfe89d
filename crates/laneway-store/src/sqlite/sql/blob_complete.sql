-- Completes a blob, if all of its chunks are there: it may have been swept while they came.
UPDATE blobs SET is_whole = 1, touched_at = ?3
WHERE hash = ?1 AND (SELECT count(*) FROM blob_chunks WHERE blob_chunks.hash = ?1) = ?2;
