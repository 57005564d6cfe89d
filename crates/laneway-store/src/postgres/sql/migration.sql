-- name: migration_add
-- Records a migration in the transaction that applies it.
INSERT INTO laneway_migrations (version) VALUES ($1);

-- name: migration_alone
-- Blocks registrations and renewals during a migration that older programs cannot tolerate.
LOCK TABLE sessions IN EXCLUSIVE MODE;

-- name: migration_last
-- Returns the schema version; 0 before the first migration.
SELECT coalesce(max(version), 0) FROM laneway_migrations;

-- name: migration_lives
-- Returns nodes with an unexpired session. The query must work on every past schema. Excludes
-- remote workers, which have a token and use a service, never the store. The caller holds the lock
-- of the table: a registration waits and sees the migrated schema.
SELECT DISTINCT node FROM sessions
WHERE token IS NULL AND expires_at > (extract(epoch FROM clock_timestamp()) * 1000)::bigint ORDER BY node;

-- name: migration_lock
-- Serializes migrations of a schema. The lock ends with the transaction, so that a connection
-- pooler does no harm.
SELECT pg_advisory_xact_lock(hashtext('laneway'), hashtext(current_schema()));

-- name: migration_table
-- Creates the table of applied migrations. The caller holds the advisory lock: without it, two
-- processes would create the table at once.
CREATE TABLE IF NOT EXISTS laneway_migrations (
    version    BIGINT PRIMARY KEY,
    applied_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

-- name: move_begin
-- Begins a transaction of unlimited duration. Both timeouts are meant for ordinary operations.
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL statement_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = 0;

-- name: move_clock
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint;

-- name: move_columns
SELECT columns.table_name::text, columns.column_name::text, columns.data_type::text
FROM information_schema.columns
JOIN information_schema.tables USING (table_schema, table_name)
WHERE columns.table_schema = current_schema() AND tables.table_type = 'BASE TABLE'
ORDER BY columns.table_name, columns.ordinal_position;

-- name: move_identities
-- Returns columns whose values come from a sequence.
SELECT table_name::text, column_name::text FROM information_schema.columns
WHERE table_schema = current_schema() AND is_identity = 'YES';

-- name: move_instance
-- Keeps the id of the moved store.
UPDATE meta SET value = $1 WHERE key = 'instance';

-- name: move_mark
-- Marks a move as unfinished, so that the store cannot be opened.
INSERT INTO meta (key, value) VALUES ('moving_from', $1);

-- name: move_unmark
-- Marks the move as finished.
DELETE FROM meta WHERE key = 'moving_from' AND value = $1 RETURNING key;

-- name: move_unmark_all
-- Deletes the mark of an unfinished move, after its rows were deleted.
DELETE FROM meta WHERE key = 'moving_from';

-- name: moving_from
-- Returns the source of an unfinished move.
SELECT value FROM meta WHERE key = 'moving_from';
