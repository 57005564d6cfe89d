-- name: artifact_add
-- Records an artifact of an attempt, only while its claim is held. The fence is the task, the claim
-- generation, the session and the status `running`. Repetition has no effect.
INSERT INTO artifacts (run_no, position, attempt, name, hash, size, is_executable)
SELECT run_no, position, attempt, ?5, ?6, ?7, ?8 FROM tasks
WHERE run_no = ?1 AND position = ?2 AND status = 'running' AND attempt + given_back = ?3 AND session = ?4
ON CONFLICT (run_no, position, attempt, name) DO UPDATE SET hash = excluded.hash, size = excluded.size,
                                                            is_executable = excluded.is_executable;

-- name: artifact_hashes
-- Returns the hashes of all artifacts and layer files. Uses artifacts_by_hash, layer_files_by_hash
-- and cache_layer_files_by_hash.
SELECT hash FROM artifacts
UNION
SELECT hash FROM layer_files
UNION
SELECT hash FROM cache_layer_files;

-- name: blob_begin
-- Inserts a blob before its chunks. Concurrent uploads of the same bytes write the same chunks.
INSERT INTO blobs (hash, size, touched_at) VALUES (?1, ?2, ?3)
ON CONFLICT (hash) DO UPDATE SET touched_at = excluded.touched_at;

-- name: blob_chunk_add
-- Inserts a chunk of an incomplete blob. Concurrent uploads of the same bytes write the same
-- chunks.
INSERT INTO blob_chunks (hash, no, bytes) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;

-- name: blob_complete
-- Completes a blob if all its chunks exist. The sweep may have deleted the blob during the upload.
UPDATE blobs SET is_whole = 1, touched_at = ?3
WHERE hash = ?1 AND (SELECT count(*) FROM blob_chunks WHERE blob_chunks.hash = ?1) = ?2;

-- name: blob_size
-- Returns the size of a complete blob.
SELECT size FROM blobs WHERE hash = ?1 AND is_whole = 1;

-- name: blob_touch
-- Protects a complete blob from the sweep until the client can refer to it.
UPDATE blobs SET touched_at = ?2 WHERE hash = ?1 AND is_whole = 1;

-- name: blob_touched
-- Returns when a client last uploaded a complete blob.
SELECT touched_at FROM blobs WHERE hash = ?1 AND is_whole = 1;

-- name: log_claim
-- Reports whether a claim is still held, before its holder writes to a file outside the store.
SELECT 1 FROM tasks JOIN runs ON runs.no = tasks.run_no
WHERE runs.id = ?1 AND tasks.position = ?2 AND tasks.status = 'running' AND tasks.attempt + tasks.given_back = ?3 AND tasks.session = ?4;

-- name: sweep_blob
-- Deletes a blob that no client uploaded since ?2 and to which no row refers.
DELETE FROM blobs
WHERE hash = ?1 AND touched_at < ?2
  AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.bundle = blobs.hash)
  AND NOT EXISTS (SELECT 1 FROM artifacts WHERE artifacts.hash = blobs.hash)
  AND NOT EXISTS (SELECT 1 FROM cache_artifacts WHERE cache_artifacts.hash = blobs.hash)
  AND NOT EXISTS (SELECT 1 FROM definitions WHERE definitions.bundle = blobs.hash)
RETURNING size;

-- name: sweep_choose
-- Returns blobs after hash ?1 that no client uploaded since ?2 and to which no row refers. Uses the
-- primary key.
SELECT hash FROM blobs
WHERE hash > ?1 AND touched_at < ?2
  AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.bundle = blobs.hash)
  AND NOT EXISTS (SELECT 1 FROM artifacts WHERE artifacts.hash = blobs.hash)
  AND NOT EXISTS (SELECT 1 FROM cache_artifacts WHERE cache_artifacts.hash = blobs.hash)
  AND NOT EXISTS (SELECT 1 FROM definitions WHERE definitions.bundle = blobs.hash)
ORDER BY hash LIMIT ?3;

-- name: sweep_chunks
DELETE FROM blob_chunks WHERE hash = ?1;

-- name: sweep_is_named
-- Reports whether an artifact or a layer file, of a run or of a cached result, has a hash. Uses
-- artifacts_by_hash, cache_artifacts_by_hash, layer_files_by_hash and cache_layer_files_by_hash.
SELECT 1 FROM artifacts WHERE hash = ?1
UNION ALL
SELECT 1 FROM cache_artifacts WHERE hash = ?1
UNION ALL
SELECT 1 FROM layer_files WHERE hash = ?1
UNION ALL
SELECT 1 FROM cache_layer_files WHERE hash = ?1;
