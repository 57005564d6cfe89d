-- name: prune_artifacts
-- Deletes artifacts below a position of a run that is being removed. Uses the primary key.
DELETE FROM artifacts WHERE run_no = ?1 AND position < ?2;

-- name: prune_attempts
-- Deletes attempts below a position of a run that is being removed. Uses the primary key.
DELETE FROM attempts WHERE run_no = ?1 AND position < ?2;

-- name: prune_audit
-- Deletes audit entries from before ?1, among the oldest ?2 entries. Keeps the newest entry, so
-- that its number is not reused. Uses the primary key.
DELETE FROM audit
WHERE seq <= (SELECT max(seq) FROM (SELECT seq FROM audit ORDER BY seq LIMIT ?2))
  AND seq < (SELECT max(seq) FROM audit) AND at < ?1;

-- name: prune_begin
-- Hides a run whose removal begins. Clears its owner and its key, so that it does not pass for a
-- submission in progress.
UPDATE runs SET is_visible = 0, owner = NULL, key = NULL WHERE no = ?1;

-- name: prune_behind
-- Returns the position after the next ?2 tasks of a run that is being removed. No row: at most ?2
-- tasks remain. Items have positions far above steps, so that positions do not show the number of
-- tasks. Uses the primary key.
SELECT position FROM tasks WHERE run_no = ?1 ORDER BY position LIMIT 1 OFFSET ?2;

-- name: prune_bytes
-- Deletes the measured size of a run that is being removed.
DELETE FROM run_bytes WHERE run_no = ?1;

-- name: prune_cache_misses
-- Deletes cache misses below a position of a run that is being removed. Uses the primary key.
DELETE FROM cache_misses WHERE run_no = ?1 AND position < ?2;

-- name: prune_check
-- Returns a run if it may be removed: it is over, not quarantined, and not the newest of its
-- workflow. Its end must have no pending firing, and its parent must be over. A run whose removal
-- has begun may also be the newest.
SELECT no, key, last_event, (SELECT count(*) FROM tasks WHERE run_no = no) FROM runs
WHERE id = ?1 AND status IN ('succeeded', 'failed', 'canceled')
  AND (is_visible = 0
       OR EXISTS (SELECT 1 FROM runs AS newer WHERE newer.workflow = runs.workflow AND newer.no > runs.no AND newer.is_visible = 1))
  AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
  AND NOT EXISTS (SELECT 1 FROM firings WHERE firings.run = runs.id)
  AND NOT EXISTS (SELECT 1 FROM runs AS above WHERE above.id = json_extract(runs.parent, '$.run') AND above.status IN ('queued', 'running'));

-- name: prune_choose
-- Returns runs of a workflow below number ?2 that may be removed, oldest first. Selects runs up to
-- number ?3, and runs that ended before ?4. Excludes quarantined runs, runs whose end has a pending
-- firing, and runs whose parent is unfinished.
-- Index: runs_by_workflow.
SELECT no, id, workflow, status, finished_at FROM runs
WHERE workflow = ?1 AND no < ?2 AND (no <= ?3 OR finished_at < ?4)
  AND is_visible = 1 AND status IN ('succeeded', 'failed', 'canceled')
  AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
  AND NOT EXISTS (SELECT 1 FROM firings WHERE firings.run = runs.id)
  AND NOT EXISTS (SELECT 1 FROM runs AS above WHERE above.id = json_extract(runs.parent, '$.run') AND above.status IN ('queued', 'running'))
ORDER BY no LIMIT ?5;

-- name: prune_effects
-- Deletes effects below a position of a run that is being removed. Uses the primary key.
DELETE FROM effects WHERE run_no = ?1 AND position < ?2;

-- name: prune_ends
-- Returns the first and the last run number.
SELECT coalesce((SELECT min(no) FROM runs), 0), coalesce((SELECT max(no) FROM runs), -1);

-- name: prune_events
-- Deletes the oldest events of a run that is being removed, up to number ?2. Uses the primary key.
DELETE FROM events WHERE run_no = ?1 AND seq <= ?2;

-- name: prune_going
-- Returns runs whose removal began and did not complete.
-- Index: runs_going.
SELECT no, id, workflow, status, finished_at FROM runs
WHERE is_visible = 0 AND status IN ('succeeded', 'failed', 'canceled') ORDER BY no;

-- name: prune_layer_files
-- Deletes layer files below a position of a run that is being removed. Uses the primary key.
DELETE FROM layer_files WHERE run_no = ?1 AND position < ?2;

-- name: prune_layers
-- Deletes layers below a position of a run that is being removed. Uses the primary key.
DELETE FROM layers WHERE run_no = ?1 AND position < ?2;

-- name: prune_measured
-- Stores the size of a run, as of event ?2.
INSERT INTO run_bytes (run_no, last_event, bytes) VALUES (?1, ?2, ?3)
ON CONFLICT (run_no) DO UPDATE SET last_event = excluded.last_event, bytes = excluded.bytes;

-- name: prune_newest
-- Returns the number of a workflow's run that has ?2 newer runs.
-- Index: runs_by_workflow.
SELECT no FROM runs WHERE workflow = ?1 AND is_visible = 1 ORDER BY no DESC LIMIT 1 OFFSET ?2;

-- name: prune_node_events
-- Deletes node events from before ?1, among the oldest ?2 events of ended sessions. Keeps events of
-- live sessions, because the state of a session is read from them. Keeps the newest event, so that
-- its number is not reused: a cursor would skip the new event. Uses the primary key.
DELETE FROM node_events
WHERE seq <= (SELECT max(seq) FROM (SELECT seq FROM node_events WHERE session NOT IN (SELECT id FROM sessions)
                                    ORDER BY seq LIMIT ?2))
  AND seq < (SELECT max(seq) FROM node_events) AND at < ?1 AND session NOT IN (SELECT id FROM sessions);

-- name: prune_oldest
-- Returns runs of any workflow that may be removed, oldest first, with their size. Uses the primary
-- key.
SELECT no, id, workflow, status, finished_at, bytes FROM runs JOIN run_bytes ON run_no = no
WHERE is_visible = 1 AND status IN ('succeeded', 'failed', 'canceled')
  AND EXISTS (SELECT 1 FROM runs AS newer WHERE newer.workflow = runs.workflow AND newer.no > runs.no AND newer.is_visible = 1)
  AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
  AND NOT EXISTS (SELECT 1 FROM firings WHERE firings.run = runs.id)
  AND NOT EXISTS (SELECT 1 FROM runs AS above WHERE above.id = json_extract(runs.parent, '$.run') AND above.status IN ('queued', 'running'))
ORDER BY no LIMIT ?1;

-- name: prune_run
-- Deletes the row of a run after all its other rows.
DELETE FROM runs WHERE no = ?1 AND is_visible = 0;

-- name: prune_size
-- Returns the stored size of a run, without its logs, which are files. Uses the primary keys.
SELECT (SELECT coalesce(sum(size), 0) FROM artifacts WHERE run_no = ?1)
     + (SELECT coalesce(sum(bytes), 0) FROM layers WHERE run_no = ?1)
     + (SELECT coalesce(sum(octet_length(body)), 0) FROM events WHERE run_no = ?1)
     + (SELECT coalesce(sum(coalesce(octet_length(stdout), 0) + coalesce(octet_length(output), 0)), 0)
        FROM effects WHERE run_no = ?1)
     + (SELECT coalesce(sum(coalesce(octet_length(stdout), 0) + coalesce(octet_length(output), 0)), 0)
        FROM laid_by_effects WHERE run_no = ?1)
     + (SELECT coalesce(sum(octet_length(output)), 0) FROM tasks WHERE run_no = ?1);

-- name: prune_tasks
-- Deletes tasks below a position of a run that is being removed. Uses the primary key.
DELETE FROM tasks WHERE run_no = ?1 AND position < ?2;

-- name: prune_total
-- Returns the total size of all measured runs. Excludes runs that are gone or being removed.
SELECT coalesce(sum(bytes), 0) FROM run_bytes JOIN runs ON no = run_no WHERE is_visible = 1;

-- name: prune_unmeasured
-- Returns ended runs that have changed since their last measurement, oldest first. Uses the primary
-- keys.
SELECT no, id, runs.last_event FROM runs LEFT JOIN run_bytes ON run_no = no
WHERE finished_at IS NOT NULL AND is_visible = 1 AND run_bytes.last_event IS NOT runs.last_event
ORDER BY no LIMIT ?1;

-- name: prune_workflows
-- Returns the names of all workflows that have run, with a lookup in runs_by_workflow for each.
WITH RECURSIVE names (name) AS (
    SELECT min(workflow) FROM runs
    UNION ALL
    SELECT (SELECT min(workflow) FROM runs WHERE workflow > name) FROM names WHERE name IS NOT NULL
)
SELECT name FROM names WHERE name IS NOT NULL;

-- name: used_key
-- Returns the removed run that was submitted with a key.
SELECT run FROM used_keys WHERE key = ?1;

-- name: used_key_add
-- Keeps the key of a run that is being removed.
INSERT INTO used_keys (key, run, removed_at) VALUES (?1, ?2, ?3)
ON CONFLICT (key) DO UPDATE SET run = excluded.run, removed_at = excluded.removed_at;

-- name: used_keys_forget
-- Deletes some keys of runs that were removed before ?1.
DELETE FROM used_keys WHERE key IN (SELECT key FROM used_keys WHERE removed_at < ?1 LIMIT ?2);
