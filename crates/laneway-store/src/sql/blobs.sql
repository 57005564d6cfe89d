-- name: artifacts
-- Returns the artifacts of succeeded tasks, only from the attempt that succeeded. Uses the primary
-- keys.
SELECT artifacts.position, artifacts.attempt, name, hash, size, is_executable
FROM tasks JOIN artifacts USING (run_no, position, attempt)
WHERE tasks.run_no = $1 AND tasks.status = 'succeeded'
ORDER BY artifacts.position, name;

-- name: blob_chunks
-- Returns up to $3 chunks of a blob, from number $2 on. Uses the primary key.
SELECT bytes FROM blob_chunks WHERE hash = $1 AND no >= $2 ORDER BY no LIMIT $3;
