-- name: run_by_key
-- Returns the run that was submitted with a key, and the fields that a repeated submission must
-- match. For a removed run only the id is known. A single statement reads both tables, because a
-- key moves from `runs` to `used_keys`.
SELECT id, workflow, version, params FROM runs WHERE key = $1
UNION ALL SELECT run, NULL, NULL, NULL FROM used_keys WHERE key = $1;

-- name: submit_audit
-- Records runs that were submitted through the service. Takes no locks.
INSERT INTO audit (at, by, act, what, origin)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[]);

-- name: submit_begin
-- Returns the owner's node, the current moment and the number of the new run. FOR KEY SHARE keeps
-- the owner's row until the transaction ends. The reaper therefore cannot reap the owner before the
-- run exists. Renewals of the owner do not wait.
SELECT node, coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint),
       nextval(pg_get_serial_sequence('runs', 'no'))
FROM sessions WHERE id = $1 FOR KEY SHARE;

-- name: submit_numbers
-- Returns the current moment with each of $1 new run numbers.
SELECT coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint),
       nextval(pg_get_serial_sequence('runs', 'no'))
FROM generate_series(1, $1);

-- name: submit_run
-- Inserts runs as the gate keeper built them. Their tasks follow in the same transaction, so that
-- no client sees a run without tasks.
INSERT INTO runs (no, id, tail, workflow, version, dir, params, max_parallel, status, reason, owner, submitted_by,
                  submitted_at, started_at, finished_at, deadline_at, last_event, unsettled, closing, placement,
                  submitted_from, key, pauses, class, bundle, hooks, levels, parent, root_no, no_cache, not_before, is_visible)
SELECT made.*, true
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31) AS made;

-- name: submit_sessions
-- Returns the nodes of submitting sessions. FOR KEY SHARE keeps the rows until the transaction
-- ends. The reaper therefore cannot reap a session before its runs exist. Renewals do not wait.
-- Uses the primary key.
SELECT id, node FROM sessions WHERE id = ANY ($1) ORDER BY id FOR KEY SHARE;

-- name: submit_task
INSERT INTO tasks (run_no, position, class, status, gate, rank, reason, detail, finished_at, started_at, took_ms, wait, due_at, growth)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14);

-- name: submit_workflow
-- Stores each document once.
INSERT INTO workflows (version, name, document, created_at) SELECT * FROM unnest($1, $2, $3, $4) ON CONFLICT DO NOTHING;

-- name: task_add
-- Inserts tasks of a running step: its items.
INSERT INTO tasks (run_no, position, class, status, gate, gate_key, wake_at, rank, attempt, reason, detail, finished_at, item,
                   started_at, took_ms, wait, due_at, given_back, start_by, fence)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20);
