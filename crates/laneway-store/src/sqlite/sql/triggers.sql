-- name: firings_add
-- Records the end of a run for the triggers that wait for it and for its own hooks.
-- Index: triggers_after.
INSERT INTO firings (run, seq, ended, status, workflow, key)
SELECT runs.id, runs.last_event, runs.workflow, runs.status, triggers.workflow, triggers.key
FROM runs JOIN triggers ON triggers.source = runs.workflow
WHERE runs.no = ?1 AND triggers.paused_by IS NULL AND instr(triggers.ends, ' ' || runs.status || ' ') > 0
  -- The hooks of an end are two runs with one name. Only the run of their steps fires triggers
  -- (`hook::Which::Callbacks`).
  AND substr(runs.version, -10) <> '.callbacks'
UNION ALL
SELECT id, last_event, workflow, status, workflow, CASE placement WHEN 'local' THEN 'hooks here' ELSE 'hooks' END
FROM runs WHERE no = ?1 AND instr(hooks, ' ' || status || ' ') > 0
  -- Hooks share the deadline of clean-up: none start after it, or in a run that never started.
  AND (deadline_at IS NOT NULL OR closing IS NULL OR closing NOT IN ('canceled', 'run_timeout'));

-- name: hooks_owed
-- Returns the latest end of a run whose hooks have not run yet.
SELECT run, seq, ended, status, workflow, key, NULL FROM firings WHERE run = ?1 AND key IN ('hooks', 'hooks here')
ORDER BY seq DESC LIMIT 1;

-- name: outbox
-- Reports whether callbacks can be sent now, or are being sent by session ?2. Also reports whether
-- an ended run has hooks that are not submitted and no live owner. Excludes tasks of quarantined
-- runs.
-- Index: tasks_available, tasks_for_nodes, tasks_timed, tasks_held.
SELECT EXISTS (SELECT 1 FROM tasks WHERE class = (SELECT no FROM classes WHERE text = ?1) AND status = 'available' AND run_no NOT IN (SELECT run_no FROM quarantine))
       OR EXISTS (SELECT 1 FROM tasks WHERE class = (SELECT no FROM classes WHERE text = ?1) AND gate = 'node' AND run_no NOT IN (SELECT run_no FROM quarantine))
       OR EXISTS (SELECT 1 FROM tasks WHERE class = (SELECT no FROM classes WHERE text = ?1) AND wake_at <= ?3 AND run_no NOT IN (SELECT run_no FROM quarantine))
       OR EXISTS (SELECT 1 FROM tasks WHERE class = (SELECT no FROM classes WHERE text = ?1) AND status = 'running' AND session = ?2 AND run_no NOT IN (SELECT run_no FROM quarantine)),
       EXISTS (SELECT 1 FROM firings WHERE key = 'hooks' OR key = 'hooks here'
               AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = firings.run AND runs.owner IS NOT NULL));

-- name: signature_remember
-- Returns the delivery that first carried a signature. The new delivery replaces a record from ?5
-- or earlier.
INSERT INTO webhook_signatures AS known (path, signature, delivery, received_at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (path, signature) DO UPDATE SET
    delivery = CASE WHEN known.received_at <= ?5 THEN excluded.delivery ELSE known.delivery END,
    received_at = CASE WHEN known.received_at <= ?5 THEN excluded.received_at ELSE known.received_at END
RETURNING delivery;

-- name: signatures_forget
-- Deletes some signatures from before ?1.
-- Index: webhook_signatures_by_age.
DELETE FROM webhook_signatures WHERE (path, signature) IN (
    SELECT path, signature FROM webhook_signatures WHERE received_at < ?1 ORDER BY received_at LIMIT ?2
);

-- name: trigger_arm
-- Stores a trigger of an applied workflow. An existing trigger keeps its progress. A new trigger
-- considers only later events, and is paused if the workflow's triggers are.
INSERT INTO triggers (workflow, key, version, source, ends, path, dealt_with, due_at, paused_by, paused_at)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, CASE WHEN ?4 IS NULL AND ?6 IS NULL AND pause.by IS NULL THEN ?7 END, pause.by, pause.at
FROM (SELECT min(paused_by) AS by, min(paused_at) AS at FROM triggers WHERE workflow = ?1) AS pause WHERE true
ON CONFLICT (workflow, key) DO UPDATE
SET version = excluded.version, ends = excluded.ends,
    due_at = CASE WHEN triggers.paused_by IS NULL THEN coalesce(triggers.due_at, excluded.due_at) END;

-- name: trigger_fired
-- Advances a schedule, unless another process has advanced it. A pause set in the meantime stays.
UPDATE triggers
SET dealt_with = ?4, due_at = CASE WHEN paused_by IS NULL THEN ?5 END,
    fired_at = coalesce(?6, fired_at),
    fired_run = CASE WHEN ?6 IS NULL THEN fired_run ELSE ?7 END,
    fault = CASE WHEN ?6 IS NULL THEN fault ELSE ?8 END
WHERE workflow = ?1 AND key = ?2 AND dealt_with = ?3;

-- name: triggers_disarm
-- Deletes triggers that the workflow no longer has; ?2 is a JSON list of its current keys.
DELETE FROM triggers WHERE workflow = ?1 AND key NOT IN (SELECT value FROM json_each(?2));

-- name: triggers_pause
-- Pauses the triggers of a workflow. Repetition has no effect.
UPDATE triggers SET paused_by = ?2, paused_at = ?3, due_at = NULL WHERE workflow = ?1 AND paused_by IS NULL;

-- name: triggers_remove
-- Deletes the triggers of a workflow and the record of their firings.
DELETE FROM triggers WHERE workflow = ?1;

-- name: triggers_resume
-- Resumes the triggers of a workflow from now on. What came during the pause is skipped.
UPDATE triggers SET paused_by = NULL, paused_at = NULL, dealt_with = ?2, due_at = CASE WHEN source IS NULL AND path IS NULL THEN ?2 END
WHERE workflow = ?1 AND paused_by IS NOT NULL;
