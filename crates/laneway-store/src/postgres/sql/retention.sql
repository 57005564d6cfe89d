-- name: prune_artifacts
-- Deletes the artifacts of a run that is being removed. Uses the primary key.
DELETE FROM artifacts WHERE run_no = $1;

-- name: prune_attempts
-- Deletes the attempts of a run that is being removed. Uses the primary key.
DELETE FROM attempts WHERE run_no = $1;

-- name: prune_audit
-- Deletes audit entries from before $1, among the oldest $2 entries. Keeps the newest entry. Skips
-- rows that another transaction holds.
-- Index: audit_pkey.
DELETE FROM audit WHERE seq IN (
    SELECT seq FROM audit
    WHERE seq <= (SELECT max(seq) FROM (SELECT seq FROM audit ORDER BY seq LIMIT $2) AS front)
      AND seq < (SELECT max(seq) FROM audit) AND at < $1
    ORDER BY seq FOR UPDATE SKIP LOCKED)
RETURNING seq;

-- name: prune_cache_misses
-- Deletes the cache misses of a run that is being removed. Uses the primary key.
DELETE FROM cache_misses WHERE run_no = $1;

-- name: prune_check
-- Returns a locked run if it may be removed: it is over, not quarantined, and not the newest of its
-- workflow. Its end must have no pending firing, and its parent must be over.
SELECT no, key FROM runs
WHERE id = $1 AND status IN ('succeeded', 'failed', 'canceled') AND is_visible
  AND EXISTS (SELECT FROM runs AS newer WHERE newer.workflow = runs.workflow AND newer.no > runs.no AND newer.is_visible)
  AND NOT EXISTS (SELECT FROM quarantine WHERE quarantine.run_no = runs.no)
  AND NOT EXISTS (SELECT FROM firings WHERE firings.run = runs.id)
  AND NOT EXISTS (SELECT FROM runs AS above WHERE above.id = (runs.parent::json ->> 'run') AND above.status IN ('queued', 'running'));

-- name: prune_choose
-- Returns runs of a workflow below number $2 that may be removed, oldest first. Selects runs up to
-- number $3, and runs that ended before $4. Excludes quarantined runs, runs whose end has a pending
-- firing, and runs whose parent is unfinished.
-- Index: runs_by_workflow.
SELECT no, id, workflow, status, finished_at FROM runs
WHERE workflow = $1 AND no < $2 AND (no <= $3 OR finished_at < $4)
  AND is_visible AND status IN ('succeeded', 'failed', 'canceled')
  AND NOT EXISTS (SELECT FROM quarantine WHERE quarantine.run_no = runs.no)
  AND NOT EXISTS (SELECT FROM firings WHERE firings.run = runs.id)
  AND NOT EXISTS (SELECT FROM runs AS above WHERE above.id = (runs.parent::json ->> 'run') AND above.status IN ('queued', 'running'))
ORDER BY no LIMIT $5;

-- name: prune_effects
-- Deletes the effects of a run that is being removed. Uses the primary key.
DELETE FROM effects WHERE run_no = $1;

-- name: prune_ends
-- Returns the first and the last run number, and the current moment.
SELECT coalesce(min(no), 0), coalesce(max(no), -1),
       coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM runs;

-- name: prune_events
-- Deletes the events of a run that is being removed. Uses the primary key.
DELETE FROM events WHERE run_no = $1;

-- name: prune_layer_files
-- Deletes the layer files of a run that is being removed. Uses the primary key.
DELETE FROM layer_files WHERE run_no = $1;

-- name: prune_layers
-- Deletes the layers of a run that is being removed. Uses the primary key.
DELETE FROM layers WHERE run_no = $1;

-- name: prune_lock
-- Locks a run before its removal. A separate statement, so that `prune_check` reads as of the lock.
-- Skips a run that another transaction holds; a later pass retries it.
SELECT no FROM runs WHERE id = $1 FOR UPDATE SKIP LOCKED;

-- name: prune_log_chunks
-- Deletes the log of a run that is being removed. Uses the primary key.
DELETE FROM log_chunks WHERE run_no = $1;

-- name: prune_measure
-- Measures some ended runs that have changed since their last measurement. Uses the primary keys.
INSERT INTO run_bytes (run_no, last_event, bytes)
SELECT no, last_event,
       (SELECT coalesce(sum(octet_length(bytes)), 0)::bigint FROM log_chunks WHERE run_no = no)
     + (SELECT coalesce(sum(size), 0)::bigint FROM artifacts WHERE run_no = no)
     + (SELECT coalesce(sum(bytes), 0)::bigint FROM layers WHERE run_no = no)
     + (SELECT coalesce(sum(octet_length(body)), 0)::bigint FROM events WHERE run_no = no)
     + (SELECT coalesce(sum(coalesce(octet_length(stdout), 0) + coalesce(octet_length(output), 0)), 0)::bigint
        FROM effects WHERE run_no = no)
     + (SELECT coalesce(sum(coalesce(octet_length(stdout), 0) + coalesce(octet_length(output), 0)), 0)::bigint
        FROM laid_by_effects WHERE run_no = no)
     + (SELECT coalesce(sum(octet_length(output)), 0)::bigint FROM tasks WHERE run_no = no)
FROM (SELECT no, runs.last_event FROM runs LEFT JOIN run_bytes ON run_no = no
      WHERE finished_at IS NOT NULL AND run_bytes.last_event IS DISTINCT FROM runs.last_event
      ORDER BY no LIMIT $1) AS unmeasured
ON CONFLICT (run_no) DO UPDATE SET last_event = excluded.last_event, bytes = excluded.bytes
RETURNING 1;

-- name: prune_newest
-- Returns the number of a workflow's run that has $2 newer runs.
-- Index: runs_by_workflow.
SELECT no FROM runs WHERE workflow = $1 AND is_visible ORDER BY no DESC LIMIT 1 OFFSET $2;

-- name: prune_node_events
-- Deletes node events from before $1, among the oldest $2 events of ended sessions. Keeps events of
-- live sessions, because the state of a session is read from them. Keeps the newest event, so that
-- its number is not reused: a cursor would skip the new event. Skips rows that another transaction
-- holds.
-- Index: node_events_pkey.
DELETE FROM node_events WHERE seq IN (
    SELECT seq FROM node_events
    WHERE seq <= (SELECT max(seq) FROM (SELECT seq FROM node_events WHERE session NOT IN (SELECT id FROM sessions)
                                        ORDER BY seq LIMIT $2) AS front)
      AND seq < (SELECT max(seq) FROM node_events) AND at < $1 AND session NOT IN (SELECT id FROM sessions)
    ORDER BY seq FOR UPDATE SKIP LOCKED)
RETURNING seq;

-- name: prune_oldest
-- Returns runs of any workflow that may be removed, oldest first, with their size. Uses the primary
-- key.
SELECT no, id, workflow, status, finished_at, bytes FROM runs JOIN run_bytes ON run_no = no
WHERE is_visible AND status IN ('succeeded', 'failed', 'canceled')
  AND EXISTS (SELECT FROM runs AS newer WHERE newer.workflow = runs.workflow AND newer.no > runs.no AND newer.is_visible)
  AND NOT EXISTS (SELECT FROM quarantine WHERE quarantine.run_no = runs.no)
  AND NOT EXISTS (SELECT FROM firings WHERE firings.run = runs.id)
  AND NOT EXISTS (SELECT FROM runs AS above WHERE above.id = (runs.parent::json ->> 'run') AND above.status IN ('queued', 'running'))
ORDER BY no LIMIT $1;

-- name: prune_run
-- Deletes the row of a run after all its other rows.
DELETE FROM runs WHERE no = $1;

-- name: prune_run_bytes
-- Deletes the measured size of a run that is being removed. Uses the primary key.
DELETE FROM run_bytes WHERE run_no = $1;

-- name: prune_size
-- Returns the stored size of runs: compressed logs, artifacts, layers, events, effects and outputs.
-- Uses the primary keys.
SELECT no,
       (SELECT coalesce(sum(octet_length(bytes)), 0)::bigint FROM log_chunks WHERE run_no = no)
     + (SELECT coalesce(sum(size), 0)::bigint FROM artifacts WHERE run_no = no)
     + (SELECT coalesce(sum(bytes), 0)::bigint FROM layers WHERE run_no = no)
     + (SELECT coalesce(sum(octet_length(body)), 0)::bigint FROM events WHERE run_no = no)
     + (SELECT coalesce(sum(coalesce(octet_length(stdout), 0) + coalesce(octet_length(output), 0)), 0)::bigint
        FROM effects WHERE run_no = no)
     + (SELECT coalesce(sum(coalesce(octet_length(stdout), 0) + coalesce(octet_length(output), 0)), 0)::bigint
        FROM laid_by_effects WHERE run_no = no)
     + (SELECT coalesce(sum(octet_length(output)), 0)::bigint FROM tasks WHERE run_no = no)
FROM unnest($1) AS no;

-- name: prune_tasks
-- Deletes the tasks of a run that is being removed. Uses the primary key.
DELETE FROM tasks WHERE run_no = $1;

-- name: prune_total
-- Returns the total size of all measured runs. Excludes runs that are gone or being removed.
SELECT coalesce(sum(bytes), 0)::bigint FROM run_bytes JOIN runs ON no = run_no WHERE is_visible;

-- name: prune_workflows
-- Returns the names of all workflows that have run, with a lookup in runs_by_workflow for each.
WITH RECURSIVE names (name) AS (
    (SELECT workflow FROM runs ORDER BY workflow LIMIT 1)
    UNION ALL
    SELECT (SELECT workflow FROM runs WHERE workflow > name ORDER BY workflow LIMIT 1) FROM names WHERE name IS NOT NULL
)
SELECT name FROM names WHERE name IS NOT NULL;

-- name: used_key_add
-- Keeps the key of a run that is being removed.
INSERT INTO used_keys (key, run, removed_at)
VALUES ($1, $2, coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint))
ON CONFLICT (key) DO UPDATE SET run = excluded.run, removed_at = excluded.removed_at;

-- name: used_keys_forget
-- Deletes some keys of runs that were removed before $1. Skips rows that another transaction holds.
DELETE FROM used_keys WHERE key IN (SELECT key FROM used_keys WHERE removed_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED);
