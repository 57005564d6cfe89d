-- name: artifact_add
-- Records artifacts of an attempt, only while its claim is held. The fence is the task, the claim
-- generation, the session and the status `running`. Repetition has no effect.
-- Index: tasks_pkey.
INSERT INTO artifacts (run_no, position, attempt, name, hash, size, is_executable)
SELECT run_no, position, attempt, given.* FROM tasks, unnest($5, $6, $7, $8) AS given
WHERE run_no = $1 AND position = $2 AND status = 'running' AND attempt + given_back = $3 AND session = $4
ON CONFLICT (run_no, position, attempt, name) DO UPDATE SET hash = excluded.hash, size = excluded.size,
                                                            is_executable = excluded.is_executable
RETURNING 1;

-- name: blob_begin
-- Inserts a blob before its chunks. Concurrent uploads of the same bytes write the same chunks.
INSERT INTO blobs (hash, size, touched_at)
VALUES ($1, $2, coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint))
ON CONFLICT (hash) DO UPDATE SET touched_at = excluded.touched_at;

-- name: blob_chunk_add
-- Inserts chunks of an incomplete blob. Concurrent uploads of the same bytes write the same chunks.
INSERT INTO blob_chunks (hash, no, bytes) SELECT $1, * FROM unnest($2, $3) ON CONFLICT DO NOTHING;

-- name: blob_complete
-- Completes a blob if all its chunks exist. The sweep may have deleted the blob during the upload.
UPDATE blobs SET is_whole = true, touched_at = coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
WHERE hash = $1 AND (SELECT count(*) FROM blob_chunks WHERE blob_chunks.hash = $1) = $2
RETURNING 1;

-- name: blob_hold
-- Returns the size of a complete blob, and protects it from the sweep until the reference to it is
-- committed. Waits for a sweep in progress.
SELECT size FROM blobs WHERE hash = $1 AND is_whole FOR KEY SHARE;

-- name: blob_size
-- Returns the size of a complete blob.
SELECT size FROM blobs WHERE hash = $1 AND is_whole;

-- name: blob_touch
-- Protects a complete blob from the sweep until the client can refer to it. A separate statement,
-- so that the next statement does not see a blob that was being swept. Skips a blob that was
-- touched less than $3 milliseconds ago.
UPDATE blobs SET touched_at = moment.now
FROM (SELECT coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now) AS moment
WHERE hash = $1 AND is_whole AND touched_at < moment.now - $3;

-- name: log_add
-- Appends log pieces of any number of attempts, only while their claims are held. The fence is the
-- task, the claim generation, the session and the status `running`, as of this statement. A
-- repeated piece, whose response was lost, may be longer than the stored piece. Returns the claims
-- that are still held.
-- Index: tasks_pkey.
WITH given AS MATERIALIZED (
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7)
        AS given (run_no, position, generation, session, start, length, bytes)
),
held AS MATERIALIZED (
    SELECT given.*, tasks.attempt FROM given JOIN tasks USING (run_no, position)
    WHERE tasks.status = 'running' AND tasks.attempt + tasks.given_back = given.generation AND tasks.session = given.session
),
added AS (
    INSERT INTO log_chunks (run_no, position, attempt, start, length, bytes)
    SELECT run_no, position, attempt, start, length, bytes FROM held
    ON CONFLICT (run_no, position, attempt, start) DO UPDATE SET length = excluded.length, bytes = excluded.bytes
    WHERE excluded.length > log_chunks.length
)
SELECT DISTINCT run_no, position, generation, session FROM held;

-- name: log_read
-- Returns the chunks that overlap a range of a log, in order. A chunk has at most 256 KiB. Uses the
-- primary key.
SELECT start, length, bytes FROM log_chunks
WHERE run_no = $1 AND position = $2 AND attempt = $3 AND start > $4 - 262144 AND start < $5
ORDER BY start;

-- name: log_size
-- Returns the length of a log, and whether its node was lost.
SELECT coalesce((SELECT start + length FROM log_chunks WHERE run_no = $1 AND position = $2 AND attempt = $3
                 ORDER BY start DESC LIMIT 1), 0),
       EXISTS (SELECT 1 FROM attempts WHERE run_no = $1 AND position = $2 AND attempt = $3 AND outcome = 'lost');

-- name: sweep_blobs
-- Deletes locked blobs and their chunks, if no row refers to them.
WITH gone AS (
    DELETE FROM blobs
    WHERE hash = ANY ($1)
      AND NOT EXISTS (SELECT FROM runs WHERE runs.bundle = blobs.hash)
      AND NOT EXISTS (SELECT FROM artifacts WHERE artifacts.hash = blobs.hash)
      AND NOT EXISTS (SELECT FROM cache_artifacts WHERE cache_artifacts.hash = blobs.hash)
      AND NOT EXISTS (SELECT FROM layer_files WHERE layer_files.hash = blobs.hash)
      AND NOT EXISTS (SELECT FROM cache_layer_files WHERE cache_layer_files.hash = blobs.hash)
      AND NOT EXISTS (SELECT FROM definitions WHERE definitions.bundle = blobs.hash)
    RETURNING hash, size
), chunks AS (DELETE FROM blob_chunks USING gone WHERE blob_chunks.hash = gone.hash)
SELECT size FROM gone;

-- name: sweep_lock
-- Locks unreferenced blobs after hash $1 that no client uploaded since $2. A separate statement, so
-- that `sweep_blobs` reads the references as of the lock. Skips blobs that another transaction is
-- about to reference.
SELECT hash FROM blobs
WHERE hash > $1 AND touched_at < $2
  AND NOT EXISTS (SELECT FROM runs WHERE runs.bundle = blobs.hash)
  AND NOT EXISTS (SELECT FROM artifacts WHERE artifacts.hash = blobs.hash)
  AND NOT EXISTS (SELECT FROM cache_artifacts WHERE cache_artifacts.hash = blobs.hash)
  AND NOT EXISTS (SELECT FROM layer_files WHERE layer_files.hash = blobs.hash)
  AND NOT EXISTS (SELECT FROM cache_layer_files WHERE cache_layer_files.hash = blobs.hash)
  AND NOT EXISTS (SELECT FROM definitions WHERE definitions.bundle = blobs.hash)
ORDER BY hash LIMIT $3 FOR UPDATE SKIP LOCKED;
