-- name: cache_artifact_add
INSERT INTO cache_artifacts (key, name, hash, size, is_executable) VALUES (?1, ?2, ?3, ?4, ?5);

-- name: cache_artifacts_clear
-- Deletes the files of a cached result. Uses the primary key.
DELETE FROM cache_artifacts WHERE key = ?1;

-- name: cache_find
-- Returns a cached result. Uses the primary key.
SELECT run, recorded_at, exit_code, output FROM cache WHERE key = ?1;

-- name: cache_forget
-- Deletes a result, unless a run has used it since. Uses the primary key.
DELETE FROM cache WHERE key = ?1 AND last_used_at <= ?2;

-- name: cache_layer
-- Returns the layer of a result. Uses the primary key.
SELECT paths, bytes, hash, packed FROM cache_layers WHERE key = ?1;

-- name: cache_layer_clear
-- Deletes the layer of a result that is removed or replaced. Uses the primary key.
DELETE FROM cache_layers WHERE key = ?1;

-- name: cache_layer_file_add
INSERT INTO cache_layer_files (key, hash) VALUES (?1, ?2) ON CONFLICT DO NOTHING;

-- name: cache_layer_files
-- Returns the large files of the layer of a result. Uses the primary key.
SELECT hash FROM cache_layer_files WHERE key = ?1 ORDER BY hash;

-- name: cache_layer_files_clear
-- Deletes the large files of a layer that is removed or replaced. Uses the primary key.
DELETE FROM cache_layer_files WHERE key = ?1;

-- name: cache_list
-- Returns results after the cursor (?3, ?4), most recently used first. ?1 and ?2 filter by workflow
-- and step; NULL means all.
SELECT key, workflow, step, run, recorded_at, took_ms, bytes, hits, last_used_at FROM cache
WHERE (?1 IS NULL OR workflow = ?1) AND (?2 IS NULL OR step = ?2)
  AND (last_used_at < ?3 OR (last_used_at = ?3 AND key > ?4))
ORDER BY last_used_at DESC, key LIMIT ?5;

-- name: cache_miss_note
-- Records why a task is executed, only while its claim is held. The fence is the task, the claim
-- generation, the session and the status `running`.
INSERT INTO cache_misses (run_no, position, attempt, body)
SELECT run_no, position, attempt, ?5 FROM tasks
WHERE run_no = ?1 AND position = ?2 AND status = 'running' AND attempt + given_back = ?3 AND session = ?4
ON CONFLICT (run_no, position) DO UPDATE SET attempt = excluded.attempt, body = excluded.body;

-- name: cache_remember
-- Records a result, or replaces an older result of the same key. The hit count stays.
INSERT INTO cache (key, workflow, step, parts, run, recorded_at, took_ms, exit_code, output, bytes, last_used_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?6)
ON CONFLICT (key) DO UPDATE SET parts = excluded.parts, run = excluded.run, recorded_at = excluded.recorded_at,
    took_ms = excluded.took_ms, exit_code = excluded.exit_code, output = excluded.output, bytes = excluded.bytes,
    last_used_at = excluded.last_used_at;

-- name: cache_total
SELECT coalesce(sum(bytes), 0) FROM cache;

-- name: cache_used
-- Counts uses of a result. Has no effect if the result is gone.
UPDATE cache SET hits = hits + ?2, last_used_at = max(last_used_at, ?3) WHERE key = ?1;
