-- name: effect_alive
-- Reports whether a session is alive: not reaped, and without a lease or with a lease that is valid
-- at ?2. A worker with a late renewal must not begin an effect, because the reaper may return its
-- tasks at any moment.
SELECT 1 FROM sessions WHERE id = ?1 AND (expires_at IS NULL OR expires_at > ?2);

-- name: effect_begin
-- Records an effect before it begins, only for a live session that holds the claim. The fence is
-- the task, the claim generation, the session and the status `running`. Replaces a failed effect,
-- or an effect of unknown outcome that may run again. Never replaces an effect that has happened.
INSERT INTO effects (run_no, position, name, key, status, attempt, session, execution, started_at, token)
SELECT run_no, position, ?5, ?6, 'started', attempt, session, ?7, ?8, ?9 FROM tasks
WHERE run_no = ?1 AND position = ?2 AND status = 'running' AND attempt + given_back = ?3 AND session = ?4
  AND EXISTS (SELECT 1 FROM sessions WHERE id = ?4 AND (expires_at IS NULL OR expires_at > ?8))
ON CONFLICT (run_no, position, name, key) DO UPDATE
SET status = 'started', attempt = excluded.attempt, session = excluded.session, execution = excluded.execution,
    started_at = excluded.started_at, token = excluded.token, finished_at = NULL, took_ms = NULL, exit_code = NULL, settled_by = NULL
WHERE effects.status <> 'done';

-- name: effect_commit
-- Records the outcome of an effect, reported by the execution that began it. The fence covers both
-- the effect and the task, which the same attempt must still hold. The lease of the session is not
-- checked: a result that arrives before the reaper acts is valid.
UPDATE effects
SET status = ?6, finished_at = ?7, took_ms = ?8, exit_code = ?9, stdout = ?10, output = ?11, lacks = ?12
WHERE run_no = ?1 AND position = ?2 AND name = ?13 AND key = ?14
  AND status = 'started' AND session = ?4 AND execution = ?5
  AND EXISTS (SELECT 1 FROM tasks
              WHERE run_no = ?1 AND position = ?2 AND status = 'running' AND attempt + given_back = ?3 AND session = ?4
                AND tasks.attempt = effects.attempt);

-- name: effect_settle
-- Records the outcome of an effect as an operator reports it, if the effect is unchanged since it
-- was read.
UPDATE effects
SET status = ?5, finished_at = ?6, settled_by = ?7, took_ms = NULL, exit_code = ?8, stdout = NULL, output = NULL, lacks = NULL
WHERE run_no = ?1 AND position = ?2 AND name = ?3 AND key = ?4 AND execution = ?9 AND status = ?10;

-- name: effects
-- Returns the effects of a run without their output. The last column marks an effect that was
-- started and that no attempt executes any more. Uses the primary keys.
SELECT effects.position, name, key, effects.status, effects.attempt, effects.started_at, effects.finished_at, effects.took_ms,
       effects.exit_code, coalesce(octet_length(stdout), 0), coalesce(octet_length(effects.output), 0), lacks, settled_by,
       effects.status = 'started'
       AND NOT (tasks.status = 'running' AND tasks.attempt = effects.attempt AND tasks.session = effects.session)
FROM effects JOIN tasks ON tasks.run_no = effects.run_no AND tasks.position = effects.position
WHERE effects.run_no = ?1 ORDER BY effects.position, name, key;

-- name: effects_lay_by
-- Saves the effects of items of step ?2, by item value, before the items are deleted. Uses the
-- primary keys.
INSERT INTO laid_by_effects
    (run_no, step, item, nth, name, key, status, attempt, session, execution, started_at, finished_at, took_ms,
    exit_code, stdout, output, lacks, settled_by, token)
SELECT run_no, ?2, item, nth, name, key, status, attempt, session, execution, started_at, finished_at, took_ms,
exit_code, stdout, output, lacks, settled_by, token
FROM effects JOIN (SELECT position, item, row_number() OVER (PARTITION BY item ORDER BY position) AS nth FROM tasks
      WHERE run_no = ?1 AND position >= ?3 AND position < ?4 AND item IS NOT NULL) AS items
     USING (position)
WHERE run_no = ?1;

-- name: effects_take_up
-- Restores saved effects to items of the same values, after the list of step ?2 was computed again.
-- Uses the primary keys.
INSERT INTO effects
    (run_no, position, name, key, status, attempt, session, execution, started_at, finished_at, took_ms, exit_code,
    stdout, output, lacks, settled_by, token)
SELECT run_no, position, name, key, status, attempt, session, execution, started_at, finished_at, took_ms, exit_code,
stdout, output, lacks, settled_by, token
FROM laid_by_effects JOIN (SELECT position, item, row_number() OVER (PARTITION BY item ORDER BY position) AS nth FROM tasks
      WHERE run_no = ?1 AND position >= ?3 AND position < ?4 AND item IS NOT NULL
        AND EXISTS (SELECT 1 FROM laid_by_effects WHERE run_no = ?1 AND step = ?2)) AS items
     USING (item, nth)
WHERE run_no = ?1 AND step = ?2;

-- name: laid_by_remove
-- Deletes the saved effects that `effects_take_up` restored. The caller passes the same items.
DELETE FROM laid_by_effects WHERE rowid IN (
SELECT laid_by_effects.rowid
FROM laid_by_effects JOIN (SELECT position, item, row_number() OVER (PARTITION BY item ORDER BY position) AS nth FROM tasks
      WHERE run_no = ?1 AND position >= ?3 AND position < ?4 AND item IS NOT NULL
        AND EXISTS (SELECT 1 FROM laid_by_effects WHERE run_no = ?1 AND step = ?2)) AS items
     USING (item, nth)
WHERE run_no = ?1 AND step = ?2);
