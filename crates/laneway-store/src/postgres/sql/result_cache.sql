-- name: cache_artifact_add
INSERT INTO cache_artifacts (key, name, hash, size, is_executable)
SELECT $1, given.* FROM unnest($2, $3, $4, $5) AS given;

-- name: cache_artifacts_clear
-- Deletes the files of cached results. Uses the primary key.
DELETE FROM cache_artifacts WHERE key = ANY ($1);

-- name: cache_find
-- Returns a cached result, and the current moment. Uses the primary key.
SELECT run, recorded_at, exit_code, output,
       coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM cache WHERE key = $1;

-- name: cache_forget
-- Deletes results with their files and layers, unless a run has used them since. Uses the primary
-- key.
WITH gone AS (
    DELETE FROM cache USING unnest($1, $2) AS given (key, used_at)
    WHERE cache.key = given.key AND cache.last_used_at <= given.used_at
    RETURNING cache.key, cache.bytes
), files AS (DELETE FROM cache_artifacts USING gone WHERE cache_artifacts.key = gone.key),
     layers AS (DELETE FROM cache_layers USING gone WHERE cache_layers.key = gone.key),
     layer_files AS (DELETE FROM cache_layer_files USING gone WHERE cache_layer_files.key = gone.key)
SELECT bytes FROM gone;

-- name: cache_layer
-- Returns the layer of a result, and its large files. Uses the primary keys.
SELECT paths, bytes, hash, packed, ARRAY(SELECT hash FROM cache_layer_files WHERE cache_layer_files.key = cache_layers.key ORDER BY hash)
FROM cache_layers WHERE key = $1;

-- name: cache_layer_clear
-- Deletes the layers of results that are about to be replaced, and their files. Uses the primary
-- keys.
WITH files AS (DELETE FROM cache_layer_files WHERE key = ANY ($1))
DELETE FROM cache_layers WHERE key = ANY ($1);

-- name: cache_layer_file_add
INSERT INTO cache_layer_files (key, hash) SELECT $1, unnest($2) ON CONFLICT DO NOTHING;

-- name: cache_list
-- Returns results after the cursor ($3, $4), most recently used first. $1 and $2 filter by workflow
-- and step; NULL means all.
SELECT key, workflow, step, run, recorded_at, took_ms, bytes, hits, last_used_at FROM cache
WHERE ($1::text IS NULL OR workflow = $1) AND ($2::text IS NULL OR step = $2)
  AND (last_used_at < $3 OR (last_used_at = $3 AND key > $4))
ORDER BY last_used_at DESC, key LIMIT $5;

-- name: cache_miss_note
-- Records why a task is executed, only while its claim is held. The fence is the task, the claim
-- generation, the session and the status `running`.
-- Index: tasks_pkey.
INSERT INTO cache_misses (run_no, position, attempt, body)
SELECT run_no, position, attempt, $5 FROM tasks
WHERE run_no = $1 AND position = $2 AND status = 'running' AND attempt + given_back = $3 AND session = $4
ON CONFLICT (run_no, position) DO UPDATE SET attempt = excluded.attempt, body = excluded.body
RETURNING 1;

-- name: cache_remember
-- Records a result, or replaces an older result of the same key. The hit count stays. The moment is
-- the database's, unless the caller passes its own. The row stays locked until the commit, so that
-- its files and layer belong to the same result.
INSERT INTO cache (key, workflow, step, parts, run, recorded_at, took_ms, exit_code, output, bytes, last_used_at)
SELECT $1, $2, $3, $4, $5, now, $7, $8, $9, $10, now
FROM (SELECT coalesce($6::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now) AS clock
ON CONFLICT (key) DO UPDATE SET parts = excluded.parts, run = excluded.run, recorded_at = excluded.recorded_at,
    took_ms = excluded.took_ms, exit_code = excluded.exit_code, output = excluded.output, bytes = excluded.bytes,
    last_used_at = excluded.last_used_at;

-- name: cache_total
-- Returns the size of all results, and the current moment.
SELECT coalesce(sum(bytes), 0)::bigint,
       coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM cache;

-- name: cache_used
-- Counts uses of results. Skips results that are locked or gone: no transaction waits for a count.
UPDATE cache SET hits = hits + given.times,
    last_used_at = greatest(last_used_at, coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint))
FROM (SELECT cache.key, given.times FROM cache JOIN unnest($1, $2) AS given (key, times) USING (key)
      ORDER BY cache.key FOR UPDATE OF cache SKIP LOCKED) AS given
WHERE cache.key = given.key;
