-- name: begin_read
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY

-- name: begin_read_shared
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL statement_timeout = '30s';
SET LOCAL idle_in_transaction_session_timeout = '3s';
SET LOCAL enable_seqscan = off;
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_mergejoin = off;
SET LOCAL jit = off

-- name: begin_write
BEGIN ISOLATION LEVEL READ COMMITTED

-- name: begin_write_shared
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL statement_timeout = '30s';
SET LOCAL idle_in_transaction_session_timeout = '3s';
SET LOCAL enable_seqscan = off;
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_mergejoin = off;
SET LOCAL jit = off

-- name: commit_lazily
-- Makes the commit of this transaction asynchronous. The next synchronous commit also writes it to
-- disk.
SELECT set_config('synchronous_commit', 'off', true);

-- name: hint
-- Notifies every node of this database that a store has changed. The caller sends it after the
-- transaction that changed the store, never inside it. At its commit, NOTIFY acquires a lock that
-- the whole database shares. A hint need not be on disk.
SELECT set_config('synchronous_commit', 'off', true), pg_notify('laneway', $1);

-- name: listen
-- Subscribes to the channel that all stores of a database share. Each message names its store.
LISTEN laneway;

-- name: live
-- Counts the holders of `max_parallel` of runs from their live tasks. The caller runs this after
-- the statement that locks the runs, never as part of it.
-- Index: tasks_live.
SELECT run_no, count(*) FROM tasks WHERE run_no = ANY ($1) AND status IN ('available', 'running') GROUP BY run_no;

-- name: look
-- Returns the version of the server, whether the connection's settings have arrived, and what the
-- schema contains. A single statement reads a single snapshot: another process may be migrating the
-- schema.
SELECT current_setting('server_version_num')::bigint,
       current_setting('server_version'),
       coalesce(current_setting('laneway.session', true), ''),
       current_schema() IS NOT NULL,
       EXISTS (SELECT 1 FROM pg_catalog.pg_class
               WHERE relnamespace = to_regnamespace(quote_ident(current_schema())) AND relname = 'laneway_migrations'),
       (SELECT count(*) FROM pg_catalog.pg_class
        WHERE relnamespace = to_regnamespace(quote_ident(current_schema())) AND relkind IN ('r', 'p', 'v', 'm')
          AND relname IN ('meta', 'workflows', 'sessions', 'runs', 'tasks', 'needs_sets', 'attempts', 'events',
                          'quarantine', 'classes', 'takers', 'paused_workflows', 'limits', 'keys', 'holds', 'orders',
                          'definitions', 'blobs', 'blob_chunks', 'log_chunks', 'artifacts', 'secrets'));

-- name: made
-- Records the id of a new store.
INSERT INTO meta (key, value) VALUES ('instance', $1);

-- name: moment
SELECT coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);

-- name: notify
-- Notifies every node of this database that a store has changed. The caller never sends it inside a
-- transaction that changes a store. At its commit, NOTIFY acquires a lock that the whole database
-- shares.
SELECT pg_notify('laneway', $1);
