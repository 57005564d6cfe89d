-- name: firings_add
-- Records the ends of runs for the triggers that wait for them and for their own hooks.
-- Index: triggers_after.
INSERT INTO firings (run, seq, ended, status, workflow, key)
SELECT runs.id, runs.last_event, runs.workflow, runs.status, triggers.workflow, triggers.key
FROM runs JOIN triggers ON triggers.source = runs.workflow
WHERE runs.no = ANY ($1) AND triggers.paused_by IS NULL AND strpos(triggers.ends, ' ' || runs.status || ' ') > 0
  -- The hooks of an end are two runs with one name. Only the run of their steps fires triggers
  -- (`hook::Which::Callbacks`).
  AND right(runs.version, 10) <> '.callbacks'
UNION ALL
SELECT id, last_event, workflow, status, workflow, CASE placement WHEN 'local' THEN 'hooks here' ELSE 'hooks' END
FROM runs WHERE no = ANY ($1) AND strpos(hooks, ' ' || status || ' ') > 0
  -- Hooks share the deadline of clean-up: none start after it, or in a run that never started.
  AND (deadline_at IS NOT NULL OR closing IS NULL OR closing NOT IN ('canceled', 'run_timeout'));

-- name: hooks_owed
-- Returns the latest end of a run whose hooks have not run yet.
SELECT run, seq, ended, status, workflow, key, NULL::text FROM firings WHERE run = $1 AND key IN ('hooks', 'hooks here')
ORDER BY seq DESC LIMIT 1;

-- name: outbox
-- Reports whether callbacks can be sent now, or are being sent by session $2. Also reports whether
-- an ended run has hooks that are not submitted and no live owner. Excludes tasks of quarantined
-- runs.
-- Index: tasks_available, tasks_for_nodes, tasks_timed, tasks_held.
SELECT EXISTS (SELECT 1 FROM tasks WHERE class = (SELECT no FROM classes WHERE text = $1) AND status = 'available' AND run_no NOT IN (SELECT run_no FROM quarantine))
       OR EXISTS (SELECT 1 FROM tasks WHERE class = (SELECT no FROM classes WHERE text = $1) AND gate = 'node' AND run_no NOT IN (SELECT run_no FROM quarantine))
       OR EXISTS (SELECT 1 FROM tasks WHERE class = (SELECT no FROM classes WHERE text = $1) AND wake_at <= coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AND run_no NOT IN (SELECT run_no FROM quarantine))
       OR EXISTS (SELECT 1 FROM tasks WHERE class = (SELECT no FROM classes WHERE text = $1) AND status = 'running' AND session = $2 AND run_no NOT IN (SELECT run_no FROM quarantine)),
       EXISTS (SELECT 1 FROM firings WHERE key = 'hooks' OR key = 'hooks here'
               AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = firings.run AND runs.owner IS NOT NULL));

-- name: signature_remember
-- Returns the delivery that first carried a signature. The new delivery replaces a record that is
-- $5 milliseconds old or older. Of two concurrent deliveries, the second waits for the row of the
-- first.
INSERT INTO webhook_signatures AS known (path, signature, delivery, received_at)
VALUES ($1, $2, $3, coalesce($4::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint))
ON CONFLICT (path, signature) DO UPDATE SET
    delivery = CASE WHEN known.received_at <= excluded.received_at - $5::bigint THEN excluded.delivery ELSE known.delivery END,
    received_at = CASE WHEN known.received_at <= excluded.received_at - $5::bigint THEN excluded.received_at
        ELSE known.received_at END
RETURNING delivery;

-- name: signatures_forget
-- Deletes some signatures that are older than $2 milliseconds. Skips rows that another node is
-- deleting.
-- Index: webhook_signatures_by_age.
DELETE FROM webhook_signatures WHERE (path, signature) IN (
    SELECT path, signature FROM webhook_signatures
    WHERE received_at < coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) - $2::bigint
    ORDER BY received_at LIMIT $3 FOR UPDATE SKIP LOCKED
);

-- name: trigger_arm
-- Stores the triggers of an applied workflow. An existing trigger keeps its progress. A new trigger
-- considers only later events, and is paused if the workflow's triggers are.
WITH moment AS (SELECT coalesce($7::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now),
pause AS (SELECT min(paused_by) AS paused_by, min(paused_at) AS paused_at FROM triggers WHERE workflow = $1)
INSERT INTO triggers (workflow, key, version, source, ends, path, dealt_with, due_at, paused_by, paused_at)
SELECT $1, key, $3, source, ends, path, now,
       CASE WHEN source IS NULL AND path IS NULL AND paused_by IS NULL THEN now END, paused_by, paused_at
FROM unnest($2::text[], $4::text[], $5::text[], $6::text[]) AS armed (key, source, ends, path), moment, pause ORDER BY key
ON CONFLICT (workflow, key) DO UPDATE
SET version = excluded.version, ends = excluded.ends,
    due_at = CASE WHEN triggers.paused_by IS NULL THEN coalesce(triggers.due_at, excluded.due_at) END;

-- name: trigger_fired
-- Advances a schedule, unless another process has advanced it. A pause set in the meantime stays.
UPDATE triggers
SET dealt_with = $4, due_at = CASE WHEN paused_by IS NULL THEN $5 END,
    fired_at = coalesce($6, fired_at),
    fired_run = CASE WHEN $6 IS NULL THEN fired_run ELSE $7 END,
    fault = CASE WHEN $6 IS NULL THEN fault ELSE $8 END
WHERE workflow = $1 AND key = $2 AND dealt_with = $3
RETURNING 1;

-- name: triggers_disarm
-- Deletes triggers that the workflow no longer has; $2 are its current keys.
DELETE FROM triggers WHERE workflow = $1 AND key <> ALL ($2);

-- name: triggers_lock
-- Serializes the applying of workflows that start after other workflows. Without the lock, two
-- workflows that form a cycle would each miss the other's row. The lock ends with the transaction.
SELECT pg_advisory_xact_lock(hashtext('laneway triggers'), hashtext(current_schema()));

-- name: triggers_pause
-- Pauses the triggers of a workflow. Repetition has no effect.
UPDATE triggers SET paused_by = $2, due_at = NULL,
       paused_at = coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
WHERE workflow = $1 AND paused_by IS NULL
RETURNING key;

-- name: triggers_remove
-- Deletes the triggers of a workflow and the record of their firings.
DELETE FROM triggers WHERE workflow = $1 RETURNING key;

-- name: triggers_resume
-- Resumes the triggers of a workflow from now on. What came during the pause is skipped.
WITH moment AS (SELECT coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now)
UPDATE triggers SET paused_by = NULL, paused_at = NULL, dealt_with = now, due_at = CASE WHEN source IS NULL AND path IS NULL THEN now END
FROM moment WHERE workflow = $1 AND paused_by IS NOT NULL
RETURNING key;
