-- name: clock_read
-- Returns the latest recorded moment. The clock of the store never goes back before it.
SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'clock';

-- name: clock_write
-- Records the moment of a batch that changed the store.
UPDATE meta SET value = ?1 WHERE key = 'clock';

-- name: data_dir
-- Returns a row if the store keeps its files in NAME.d.
SELECT value FROM meta WHERE key = 'data_dir';

-- name: data_dir_own
-- Records that the store keeps its files in NAME.d.
INSERT INTO meta (key, value) VALUES ('data_dir', 'own') ON CONFLICT (key) DO NOTHING;

-- name: data_dir_parent
-- Records that the store keeps its files in the directory of the database.
DELETE FROM meta WHERE key = 'data_dir';

-- name: live
-- Counts the holders of `max_parallel` of a run from its live tasks. INDEXED BY is necessary: the
-- planner rates the primary key as equal. It would read every task of the run at each finish.
-- Index: tasks_live.
SELECT count(*) FROM tasks INDEXED BY tasks_live WHERE run_no = ?1 AND status IN ('available', 'running');

-- name: look
-- Returns the identity of a file: its application id, its schema version, and its number of
-- objects.
SELECT (SELECT application_id FROM pragma_application_id),
       (SELECT user_version FROM pragma_user_version),
       (SELECT count(*) FROM sqlite_schema);

-- name: made
-- Records the id of a new store, with a clock before its first write.
INSERT INTO meta (key, value) VALUES ('instance', ?1), ('clock', '0');
