-- name: run_behind
-- Skips ?2 runs, newest first, and returns the next run. Begins after run ?1, or at the newest run
-- if ?1 is NULL. Walks the primary key from there.
SELECT id, submitted_at FROM runs
WHERE is_visible = 1 AND no < CASE WHEN ?1 IS NULL THEN 9223372036854775807 ELSE (SELECT behind.no FROM runs AS behind WHERE behind.id = ?1) END
ORDER BY no DESC LIMIT 1 OFFSET ?2;

-- name: run_behind_of
-- Returns the same as `run_behind` for the runs of workflow ?3.
-- Index: runs_by_workflow.
SELECT id, submitted_at FROM runs
WHERE is_visible = 1 AND workflow = ?3 AND no < CASE WHEN ?1 IS NULL THEN 9223372036854775807 ELSE (SELECT behind.no FROM runs AS behind WHERE behind.id = ?1) END
ORDER BY no DESC LIMIT 1 OFFSET ?2;

-- name: run_count
-- Updates the columns that change with every event. A separate statement: an UPDATE that names an
-- indexed column rewrites the index, even if the value is unchanged.
UPDATE runs SET last_event = ?2, unsettled = ?3 WHERE no = ?1;

-- name: run_failures
-- Returns the first failure of a run, and the number of failures. The step reports the failures of
-- its items.
SELECT position, reason, detail, count(*) OVER (), finished_at FROM tasks
WHERE run_no = ?1 AND status = 'failed' AND item IS NULL ORDER BY finished_at, position LIMIT 1;

-- name: run_find
-- Returns runs whose id or tail begins with ?1. Six rows are enough to report an ambiguous prefix.
-- `g` is the first letter after the hexadecimal digits.
-- Index: runs_by_tail.
SELECT id FROM runs WHERE is_visible = 1 AND tail >= ?1 AND tail < ?1 || 'g'
UNION
SELECT id FROM runs WHERE is_visible = 1 AND id >= ?1 AND id < ?1 || 'g'
LIMIT 6;

-- name: run_head
-- Returns the parts of a run that never change. Excludes a run whose removal has begun. Includes a
-- run that is being submitted, which only its submitter knows.
SELECT no, version, dir, params, max_parallel, placement, submitted_from, class, bundle, parent, root_no, no_cache FROM runs
WHERE id = ?1 AND (is_visible = 1 OR finished_at IS NULL);

-- name: run_id
SELECT id FROM runs WHERE no = ?1;

-- name: run_last
-- Resolves `last`: the newest run that a person or a program submitted. Excludes runs from steps,
-- hooks and triggers: Laneway reserves the key prefixes below (`submission_key.rs`). Walks down the
-- primary key past the other runs.
SELECT id FROM runs
WHERE is_visible = 1 AND parent IS NULL
  AND (key IS NULL OR NOT (key GLOB 'schedule *' OR key GLOB 'after *' OR key GLOB 'webhook *' OR key GLOB 'hooks of *' OR key GLOB 'child of *'))
ORDER BY no DESC LIMIT 1;

-- name: run_load
-- Returns the parts of a run that operations change, and whether it is quarantined. Excludes a run
-- whose removal has begun, even for a process that knew it before. Includes a run that is being
-- submitted, which only its submitter knows.
SELECT status, reason, closing, owner, started_at, finished_at, deadline_at, last_event, unsettled, pauses, levels,
       not_before, EXISTS (SELECT 1 FROM quarantine WHERE run_no = ?1)
FROM runs WHERE no = ?1 AND (is_visible = 1 OR finished_at IS NULL);

-- name: run_no
-- Returns the number of a visible run.
SELECT no FROM runs WHERE id = ?1 AND is_visible = 1;

-- name: run_outputs_size
-- Returns the total size of the outputs of a run's steps.
SELECT coalesce(sum(length(output)), 0) FROM tasks WHERE run_no = ?1 AND position < ?2;

-- name: run_reopened_by
-- Returns the actor that last reopened a run. Walks the history from its end. Only a release runs
-- this, after it has read the complete history.
SELECT json_extract(body, '$.by') FROM events
WHERE run_no = ?1 AND name = 'run_reopened'
ORDER BY seq DESC LIMIT 1;

-- name: run_save
-- Writes a run back after an operation. SQLite has a single writer, so no other process has changed
-- it since `run_load`.
UPDATE runs
SET status = ?2, reason = ?3, closing = ?4, owner = ?5, started_at = ?6, finished_at = ?7, deadline_at = ?8,
    last_event = ?9, unsettled = ?10, pauses = ?11, levels = ?12, not_before = ?13
WHERE no = ?1;

-- name: run_status
-- Returns the status of a visible run.
SELECT status FROM runs WHERE id = ?1 AND is_visible = 1;

-- name: run_without_node
-- Returns a row if a run has executed nothing and cannot execute anything now. The row has the
-- class of a task that could start but that no live session accepts. Uses the primary key.
SELECT min(class) FILTER (WHERE gate = 'node' OR status = 'available') FROM tasks WHERE run_no = ?1
HAVING count(*) FILTER (
    WHERE status NOT IN ('pending', 'available', 'skipped')
       OR (status = 'available' AND EXISTS (SELECT 1 FROM takers WHERE takers.class = tasks.class))
) = 0;

-- name: runs
-- Returns runs, newest first, after run ?4 if given, and down to run ?8 if given. The walk along
-- the primary key ends at the limit or at the lower bound. With a selective filter it reads all
-- runs between the bounds, and none outside. Each bound is a single value: with OR, SQLite would
-- check it for every run. A bound that no longer exists is NULL and yields no rows. ?1 filters by
-- status: a list with a blank around each word. ?7 is a prefix of the id, of the tail or of the
-- workflow name.
SELECT no, id, workflow, status, reason, submitted_at, started_at, finished_at, submitted_by, owner, placement,
       closing, pauses, not_before
FROM runs
WHERE is_visible = 1 AND (?1 IS NULL OR instr(?1, ' ' || status || ' ') > 0) AND ?2 IS NULL
  AND no < CASE WHEN ?4 IS NULL THEN 9223372036854775807 ELSE (SELECT behind.no FROM runs AS behind WHERE behind.id = ?4) END
  AND no >= CASE WHEN ?8 IS NULL THEN 0 ELSE (SELECT last.no FROM runs AS last WHERE last.id = ?8) END
  AND (?5 IS NULL OR submitted_at >= ?5) AND (?6 IS NULL OR submitted_at < ?6)
  AND (?7 IS NULL OR substr(workflow, 1, length(?7)) = ?7 OR substr(id, 1, length(?7)) = lower(?7)
       OR substr(tail, 1, length(?7)) = lower(?7))
ORDER BY no DESC LIMIT ?3;

-- name: runs_bound
-- Returns the runs that stay on the node of a session, except quarantined ones.
-- Index: runs_owned.
SELECT no FROM runs WHERE owner = ?1 AND placement <> 'local' AND no NOT IN (SELECT run_no FROM quarantine);

-- name: runs_named
-- Returns the same as `runs` for the runs of workflow ?2.
-- Index: runs_by_workflow.
SELECT no, id, workflow, status, reason, submitted_at, started_at, finished_at, submitted_by, owner, placement,
       closing, pauses, not_before
FROM runs
WHERE is_visible = 1 AND (?1 IS NULL OR instr(?1, ' ' || status || ' ') > 0) AND workflow = ?2
  AND no < CASE WHEN ?4 IS NULL THEN 9223372036854775807 ELSE (SELECT behind.no FROM runs AS behind WHERE behind.id = ?4) END
  AND no >= CASE WHEN ?8 IS NULL THEN 0 ELSE (SELECT last.no FROM runs AS last WHERE last.id = ?8) END
  AND (?5 IS NULL OR submitted_at >= ?5) AND (?6 IS NULL OR submitted_at < ?6)
  AND (?7 IS NULL OR substr(workflow, 1, length(?7)) = ?7 OR substr(id, 1, length(?7)) = lower(?7)
       OR substr(tail, 1, length(?7)) = lower(?7))
ORDER BY no DESC LIMIT ?3;

-- name: runs_of_workflow
-- Returns the unfinished runs of a workflow. Uses runs_running and runs_queued.
SELECT id FROM runs WHERE workflow = ?1 AND status = 'running'
UNION ALL
SELECT id FROM runs WHERE workflow = ?1 AND status = 'queued' AND is_visible = 1;

-- name: runs_queued
-- Returns the queued runs of a workflow, oldest first. Excludes runs with a later start time and
-- quarantined runs. Also excludes a local run whose process is gone: it would occupy the place and
-- do no work.
-- Index: runs_queued.
SELECT no, id FROM runs
WHERE workflow = ?1 AND status = 'queued' AND is_visible = 1 AND not_before IS NULL
  AND NOT (placement = 'local' AND owner IS NULL)
  AND no NOT IN (SELECT run_no FROM quarantine)
ORDER BY no;

-- name: runs_running
-- Returns the running runs of a workflow, oldest first, and whether each is quarantined.
-- Quarantined runs are included because they keep their places.
-- Index: runs_running.
SELECT no, id, closing IN ('canceled', 'run_timeout'), no IN (SELECT run_no FROM quarantine)
FROM runs WHERE workflow = ?1 AND status = 'running' ORDER BY no;
