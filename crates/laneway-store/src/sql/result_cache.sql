-- name: cache_artifacts
-- Returns the files of a cached result. Uses the primary key.
SELECT name, hash, size, is_executable FROM cache_artifacts WHERE key = $1 ORDER BY name;

-- name: cache_layer_set
INSERT INTO cache_layers (key, paths, bytes, hash, packed) VALUES ($1, $2, $3, $4, $5);

-- name: cache_miss
-- Returns why a task was executed instead of using a cached result. Uses the primary key.
SELECT attempt, body FROM cache_misses WHERE run_no = $1 AND position = $2;

-- name: cache_of_step
-- Returns the newest results of a step.
-- Index: cache_of_step.
SELECT run, recorded_at, parts FROM cache WHERE workflow = $1 AND step = $2 ORDER BY recorded_at DESC LIMIT $3;

-- name: cache_unused
-- Returns the least recently used results.
-- Index: cache_by_use.
SELECT key, bytes, last_used_at FROM cache ORDER BY last_used_at, key LIMIT $1;
