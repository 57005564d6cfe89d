-- name: run_behind
-- Skips $2 runs, newest first, and returns the next run. Begins after run $1, or at the newest run
-- if $1 is NULL. Walks the primary key from there.
SELECT id, submitted_at FROM runs
WHERE is_visible AND no < CASE WHEN $1::text IS NULL THEN 9223372036854775807 ELSE (SELECT behind.no FROM runs AS behind WHERE behind.id = $1) END
ORDER BY no DESC LIMIT 1 OFFSET $2;

-- name: run_behind_of
-- Returns the same as `run_behind` for the runs of workflow $3.
-- Index: runs_by_workflow.
SELECT id, submitted_at FROM runs
WHERE is_visible AND workflow = $3 AND no < CASE WHEN $1::text IS NULL THEN 9223372036854775807 ELSE (SELECT behind.no FROM runs AS behind WHERE behind.id = $1) END
ORDER BY no DESC LIMIT 1 OFFSET $2;

-- name: run_count
-- Updates the columns that change with every event. No index contains these two columns, so the
-- server keeps the row on its page. The caller holds the locks of the runs.
UPDATE runs SET last_event = made.last_event, unsettled = made.unsettled
FROM unnest($1, $2, $3) AS made (no, last_event, unsettled) WHERE runs.no = made.no;

-- name: run_failures
-- Returns the first failure of each run, and the number of failures. The step reports the failures
-- of its items. Uses the primary key.
SELECT DISTINCT ON (run_no) run_no, position, reason, detail, finished_at, count(*) OVER (PARTITION BY run_no)
FROM tasks WHERE run_no = ANY ($1) AND status = 'failed' AND item IS NULL ORDER BY run_no, finished_at, position;

-- name: run_find
-- Returns runs whose id or tail begins with $1. Six rows are enough to report an ambiguous prefix.
-- `g` is the first letter after the hexadecimal digits. Ids compare by bytes. Also uses the index
-- of the ids.
-- Index: runs_by_tail.
SELECT id FROM runs WHERE is_visible AND tail >= $1 AND tail < $1 || 'g'
UNION
SELECT id FROM runs WHERE is_visible AND id >= $1 AND id < $1 || 'g'
LIMIT 6;

-- name: run_head
-- Returns the parts of a run that never change.
SELECT no, version, dir, params, max_parallel, placement, submitted_from, class, bundle, parent, root_no, no_cache FROM runs WHERE id = $1;

-- name: run_last
-- Resolves `last`: the newest run that a person or a program submitted. Excludes runs from steps,
-- hooks and triggers: Laneway reserves the key prefixes below (`submission_key.rs`). Walks down the
-- primary key past the other runs.
SELECT id FROM runs
WHERE is_visible AND parent IS NULL
  AND (key IS NULL OR NOT (key LIKE 'schedule %' OR key LIKE 'after %' OR key LIKE 'webhook %' OR key LIKE 'hooks of %' OR key LIKE 'child of %'))
ORDER BY no DESC LIMIT 1;

-- name: run_load
-- Returns the parts of runs that operations change, whether they are quarantined, and the current
-- moment. The moment is the database's clock, unless the caller passes its own ($2). It is never
-- before the last event of the run. The caller holds the locks of the runs.
SELECT no, status, reason, closing, owner, started_at, finished_at, deadline_at, last_event, unsettled,
       quarantine.run_no IS NOT NULL,
       greatest(coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint),
                (SELECT at FROM events WHERE events.run_no = runs.no AND seq = last_event)),
       coalesce(what, ''), coalesce(why, ''), pauses, levels, not_before
FROM runs LEFT JOIN quarantine ON quarantine.run_no = runs.no
WHERE no = ANY ($1);

-- name: run_no
-- Returns the number of a visible run.
SELECT no FROM runs WHERE id = $1 AND is_visible;

-- name: run_outputs_size
-- Returns the total size of the outputs of a run's steps.
SELECT coalesce(sum(length(output)), 0)::bigint FROM tasks WHERE run_no = $1 AND position < $2;

-- name: run_reopened_by
-- Returns the actor that last reopened a run. Walks the history from its end. Only a release runs
-- this, after it has read the complete history.
SELECT body::json ->> 'by' FROM events
WHERE run_no = $1 AND name = 'run_reopened'
ORDER BY seq DESC LIMIT 1;

-- name: run_save
-- Writes runs back after an operation. The caller has held their locks since `run_load`.
UPDATE runs
SET status = made.status, reason = made.reason, closing = made.closing, owner = made.owner,
    started_at = made.started_at, finished_at = made.finished_at, deadline_at = made.deadline_at,
    last_event = made.last_event, unsettled = made.unsettled, pauses = made.pauses, levels = made.levels,
    not_before = made.not_before
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
     AS made (no, status, reason, closing, owner, started_at, finished_at, deadline_at, last_event, unsettled, pauses, levels,
              not_before)
WHERE runs.no = made.no;

-- name: run_status
-- Returns the status of a visible run.
SELECT status FROM runs WHERE id = $1 AND is_visible;

-- name: runs
-- Returns runs, newest first, after run $4 if given, and down to run $8 if given. The walk along
-- the primary key ends at the limit or at the lower bound. With a selective filter it reads all
-- runs between the bounds, and none outside. Each bound is a single value: with OR, the server
-- would check it for every run. A bound that no longer exists is NULL and yields no rows. $1
-- filters by status. $7 is a prefix of the id, of the tail or of the workflow name. Takes no locks.
SELECT no, id, workflow, status, reason, submitted_at, started_at, finished_at, submitted_by, owner, placement,
       closing, pauses, not_before
FROM runs
WHERE is_visible AND ($1::text[] IS NULL OR status = ANY ($1)) AND $2::text IS NULL
  AND no < CASE WHEN $4::text IS NULL THEN 9223372036854775807 ELSE (SELECT behind.no FROM runs AS behind WHERE behind.id = $4) END
  AND no >= CASE WHEN $8::text IS NULL THEN 0 ELSE (SELECT last.no FROM runs AS last WHERE last.id = $8) END
  AND ($5::bigint IS NULL OR submitted_at >= $5) AND ($6::bigint IS NULL OR submitted_at < $6)
  AND ($7::text IS NULL OR starts_with(workflow, $7) OR starts_with(id, lower($7)) OR starts_with(tail, lower($7)))
ORDER BY no DESC LIMIT $3;

-- name: runs_lock
-- Locks runs in the global order of all operations. A separate statement: the next statement reads
-- as of the lock, while this statement reads as of before the wait. Uses the primary key.
SELECT no FROM runs WHERE no = ANY ($1) ORDER BY no FOR UPDATE;

-- name: runs_named
-- Returns the same as `runs` for the runs of workflow $2. Takes no locks.
-- Index: runs_by_workflow.
SELECT no, id, workflow, status, reason, submitted_at, started_at, finished_at, submitted_by, owner, placement,
       closing, pauses, not_before
FROM runs
WHERE is_visible AND ($1::text[] IS NULL OR status = ANY ($1)) AND workflow = $2
  AND no < CASE WHEN $4::text IS NULL THEN 9223372036854775807 ELSE (SELECT behind.no FROM runs AS behind WHERE behind.id = $4) END
  AND no >= CASE WHEN $8::text IS NULL THEN 0 ELSE (SELECT last.no FROM runs AS last WHERE last.id = $8) END
  AND ($5::bigint IS NULL OR submitted_at >= $5) AND ($6::bigint IS NULL OR submitted_at < $6)
  AND ($7::text IS NULL OR starts_with(workflow, $7) OR starts_with(id, lower($7)) OR starts_with(tail, lower($7)))
ORDER BY no DESC LIMIT $3;

-- name: runs_of_workflow
-- Returns the unfinished runs of a workflow, in lock order. Uses runs_running and runs_queued.
SELECT id FROM (
    SELECT id, no FROM runs WHERE workflow = $1 AND status = 'running'
    UNION ALL
    SELECT id, no FROM runs WHERE workflow = $1 AND status = 'queued' AND is_visible
) AS unended ORDER BY no;

-- name: runs_owned
-- Returns the runs of a session, and whether each stays on its node and can be changed.
-- Index: runs_owned.
SELECT no, id, placement <> 'local' AND NOT EXISTS (SELECT 1 FROM quarantine WHERE run_no = no) FROM runs WHERE owner = $1;

-- name: runs_queued
-- Returns the queued runs of a workflow, oldest first. Excludes runs with a later start time and
-- quarantined runs. Also excludes a local run whose process is gone: it would occupy the place and
-- do no work.
-- Index: runs_queued.
SELECT no, id FROM runs
WHERE workflow = $1 AND status = 'queued' AND is_visible AND not_before IS NULL
  AND NOT (placement = 'local' AND owner IS NULL)
  AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
ORDER BY no;

-- name: runs_running
-- Returns the running runs of a workflow, oldest first, and whether each is quarantined.
-- Quarantined runs are included because they keep their places.
-- Index: runs_running.
SELECT no, id, coalesce(closing IN ('canceled', 'run_timeout'), false),
       EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
FROM runs WHERE workflow = $1 AND status = 'running' ORDER BY no;

-- name: runs_without_node
-- Returns those of the runs that have executed nothing and cannot execute anything now. Also
-- returns the class of a task that could start but that no live session accepts. Uses the primary
-- key.
SELECT run_no, min(class) FILTER (WHERE gate = 'node' OR status = 'available') FROM tasks WHERE run_no = ANY ($1)
GROUP BY run_no
HAVING count(*) FILTER (
    WHERE status NOT IN ('pending', 'available', 'skipped')
       OR (status = 'available' AND EXISTS (SELECT 1 FROM takers WHERE takers.class = tasks.class))
) = 0;
