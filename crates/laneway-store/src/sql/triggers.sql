-- name: firing_done
-- Deletes the firing of a run end that was processed. Also deletes hook firings of earlier ends of
-- the run: hooks that have not run by now never run.
DELETE FROM firings
WHERE run = $1 AND workflow = $3 AND key = $4 AND (seq = $2 OR seq < $2 AND key IN ('hooks', 'hooks here'));

-- name: firing_settled
-- Clears the owner of an ended run, after the owner has handled its hooks.
UPDATE runs SET owner = NULL WHERE id = $1 AND finished_at IS NOT NULL AND owner IS NOT NULL;

-- name: firings
-- Returns run ends that have not fired yet, oldest first, with the version of the waiting trigger.
-- The version is NULL if that trigger is gone or paused. Excludes hooks of a local run while its
-- owner lives: the owner runs them.
SELECT firings.run, firings.seq, firings.ended, firings.status, firings.workflow, firings.key, triggers.version
FROM firings LEFT JOIN triggers
     ON triggers.workflow = firings.workflow AND triggers.key = firings.key AND triggers.paused_by IS NULL
WHERE firings.key <> 'hooks here'
   OR NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = firings.run AND runs.owner IS NOT NULL)
ORDER BY firings.run, firings.seq, firings.workflow, firings.key LIMIT $1;

-- name: trigger_at_path
-- Returns the webhook trigger at a path.
-- Index: triggers_by_path.
SELECT workflow, key, version, dealt_with, due_at, paused_by, paused_at, fired_at, fired_run, fault
FROM triggers WHERE path = $1;

-- name: trigger_last
-- Records the result of a firing at its trigger.
UPDATE triggers SET fired_at = $3, fired_run = $4, fault = $5 WHERE workflow = $1 AND key = $2;

-- name: trigger_next
-- Returns when the next schedule becomes due after $1.
-- Index: triggers_due.
SELECT min(due_at) FROM triggers WHERE due_at > $1;

-- name: triggers
SELECT workflow, key, version, dealt_with, due_at, paused_by, paused_at, fired_at, fired_run, fault
FROM triggers ORDER BY workflow, key;

-- name: triggers_after
-- Returns which workflows start after which. The store reads it when such a workflow is applied.
-- There are few rows.
SELECT workflow, source FROM triggers WHERE source IS NOT NULL ORDER BY workflow, source;

-- name: triggers_due
-- Returns due schedules, oldest first.
-- Index: triggers_due.
SELECT workflow, key, version, dealt_with, due_at, paused_by, paused_at, fired_at, fired_run, fault
FROM triggers WHERE due_at <= $1 ORDER BY due_at, workflow, key LIMIT $2;

-- name: triggers_known
SELECT count(*) FROM triggers WHERE workflow = $1;

-- name: triggers_live
-- Counts the triggers of a workflow that are not paused.
SELECT count(*) FROM triggers WHERE workflow = $1 AND paused_by IS NULL;
