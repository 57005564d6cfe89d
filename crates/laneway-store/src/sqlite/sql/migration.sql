-- name: migration_lives
-- Returns sessions of processes on this host. The query must work on every past schema. Excludes
-- remote workers, which have a lease and use a service, never the store.
SELECT id, node FROM sessions WHERE expires_at IS NULL ORDER BY node, id;

-- name: move_attempts
-- Returns the attempts of a run, including the unfinished last attempt of each task.
SELECT position, attempt FROM attempts WHERE run_no = ?1
UNION
SELECT position, attempt FROM tasks WHERE run_no = ?1 AND attempt > 0
ORDER BY 1, 2;

-- name: move_columns
SELECT tables.name, columns.name
FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
WHERE tables.type = 'table' ORDER BY tables.name, columns.cid;

-- name: move_files
-- Returns hashes of files outside the database: rows refer to them, but no blob has them.
SELECT hash FROM (
    SELECT hash FROM artifacts UNION SELECT hash FROM cache_artifacts
    UNION SELECT hash FROM layer_files UNION SELECT hash FROM cache_layer_files
) WHERE hash NOT IN (SELECT hash FROM blobs WHERE is_whole = 1) ORDER BY hash;

-- name: move_mark
-- Records the new address of a moved store.
INSERT INTO meta (key, value) VALUES ('moved_to', ?1);

-- name: move_numbers
-- Returns the last assigned number of tables that never reuse a number.
SELECT name, seq FROM sqlite_sequence;

-- name: move_running
-- Counts claimed tasks.
-- Index: tasks_held.
SELECT count(*) FROM tasks WHERE status = 'running' AND session IS NOT NULL;

-- name: move_runs
SELECT id FROM runs WHERE is_visible = 1 ORDER BY no;

-- name: move_sessions
-- Returns the sessions that remain after a reap. Each belongs to a process that uses the store.
SELECT node, pid FROM sessions ORDER BY node, id;

-- name: move_target
-- Returns the new address of a moved store.
SELECT value FROM meta WHERE key = 'moved_to';

-- name: move_unmark
-- Marks the store as no longer moved.
DELETE FROM meta WHERE key = 'moved_to';
