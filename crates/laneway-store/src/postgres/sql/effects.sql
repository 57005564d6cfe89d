-- name: effect_alive
-- Reports whether a session is alive: not reaped, and with an unexpired lease. A worker with a late
-- renewal must not begin an effect, because the reaper may return its tasks at any moment.
SELECT 1 FROM sessions
WHERE id = $1 AND expires_at > coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);

-- name: effect_begin
-- Records an effect before it begins, only for a live session that holds the claim. The fence is
-- the task, the claim generation, the session and the status `running`. Replaces a failed effect,
-- or an effect of unknown outcome that may run again. Never replaces an effect that has happened.
-- As in `task_save`, the division fails the whole transaction, including events, if no row was
-- written.
WITH written AS (
    INSERT INTO effects (run_no, position, name, key, status, attempt, session, execution, started_at, token)
    SELECT run_no, position, $5, $6, 'started', attempt, session, $7, $8, $10 FROM tasks
    WHERE run_no = $1 AND position = $2 AND status = 'running' AND attempt + given_back = $3 AND session = $4
      AND EXISTS (SELECT 1 FROM sessions
                  WHERE id = $4
                    AND expires_at > coalesce($9::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint))
    ON CONFLICT (run_no, position, name, key) DO UPDATE
    SET status = 'started', attempt = excluded.attempt, session = excluded.session, execution = excluded.execution,
        started_at = excluded.started_at, token = excluded.token, finished_at = NULL, took_ms = NULL, exit_code = NULL, settled_by = NULL
    WHERE effects.status <> 'done'
    RETURNING 1
)
SELECT 1 / (SELECT count(*) FROM written)::int;

-- name: effect_commit
-- Records the outcome of an effect, reported by the execution that began it. The fence covers both
-- the effect and the task, which the same attempt must still hold. The lease of the session is not
-- checked: a result that arrives before the reaper acts is valid. As in `task_save`, the division
-- fails the whole transaction, including events, if no row was written.
WITH written AS (
    UPDATE effects
    SET status = $6, finished_at = $7, took_ms = $8, exit_code = $9, stdout = $10, output = $11, lacks = $12
    WHERE run_no = $1 AND position = $2 AND name = $13 AND key = $14
      AND status = 'started' AND session = $4 AND execution = $5
      AND EXISTS (SELECT 1 FROM tasks
                  WHERE run_no = $1 AND position = $2 AND status = 'running' AND attempt + given_back = $3 AND session = $4
                    AND tasks.attempt = effects.attempt)
    RETURNING 1
)
SELECT 1 / (SELECT count(*) FROM written)::int;

-- name: effect_settle
-- Records the outcome of an effect as an operator reports it, if the effect is unchanged since it
-- was read. As in `task_save`, the division fails the whole transaction, including events, if it
-- has changed.
WITH written AS (
    UPDATE effects
    SET status = $5, finished_at = $6, settled_by = $7, took_ms = NULL, exit_code = $8, stdout = NULL, output = NULL,
        lacks = NULL
    WHERE run_no = $1 AND position = $2 AND name = $3 AND key = $4 AND execution = $9 AND status = $10
    RETURNING 1
)
SELECT 1 / (SELECT count(*) FROM written)::int;

-- name: effects
-- Returns the effects of a run without their output. The last column marks an effect that was
-- started and that no attempt executes any more. Uses the primary keys.
SELECT effects.position, name, key, effects.status, effects.attempt, effects.started_at, effects.finished_at, effects.took_ms,
       effects.exit_code, coalesce(octet_length(stdout), 0)::bigint, coalesce(octet_length(effects.output), 0)::bigint, lacks, settled_by,
       effects.status = 'started'
       AND NOT (tasks.status = 'running' AND tasks.attempt = effects.attempt AND tasks.session = effects.session)
FROM effects JOIN tasks ON tasks.run_no = effects.run_no AND tasks.position = effects.position
WHERE effects.run_no = $1 ORDER BY effects.position, name, key;

-- name: effects_lay_by
-- Saves the effects of items, by item value, before the items are deleted. The caller holds the
-- locks of the runs. Uses the primary keys.
INSERT INTO laid_by_effects
    (run_no, step, item, nth, name, key, status, attempt, session, execution, started_at, finished_at, took_ms,
    exit_code, stdout, output, lacks, settled_by, token)
SELECT run_no, step, item, nth, name, key, status, attempt, session, execution, started_at, finished_at, took_ms,
exit_code, stdout, output, lacks, settled_by, token
FROM effects JOIN (SELECT tasks.run_no, list.step, position, item,
             row_number() OVER (PARTITION BY tasks.run_no, list.step, item ORDER BY position) AS nth
      FROM tasks JOIN unnest($1, $2, $3, $4) AS list (run_no, step, first, behind)
           ON tasks.run_no = list.run_no AND position >= first AND position < behind
      WHERE item IS NOT NULL) AS items
     USING (run_no, position);

-- name: effects_take_up
-- Restores saved effects to items of the same values, after their lists were computed again. The
-- caller holds the locks of the runs. Uses the primary keys.
INSERT INTO effects
    (run_no, position, name, key, status, attempt, session, execution, started_at, finished_at, took_ms, exit_code,
    stdout, output, lacks, settled_by, token)
SELECT run_no, position, name, key, status, attempt, session, execution, started_at, finished_at, took_ms, exit_code,
stdout, output, lacks, settled_by, token
FROM laid_by_effects JOIN (SELECT tasks.run_no, list.step, position, item,
             row_number() OVER (PARTITION BY tasks.run_no, list.step, item ORDER BY position) AS nth
      FROM tasks JOIN unnest($1, $2, $3, $4) AS list (run_no, step, first, behind)
           ON tasks.run_no = list.run_no AND position >= first AND position < behind
      WHERE item IS NOT NULL
        AND EXISTS (SELECT 1 FROM laid_by_effects AS any_of WHERE any_of.run_no = list.run_no AND any_of.step = list.step)) AS items
     USING (run_no, step, item, nth);

-- name: laid_by_remove
-- Deletes the saved effects that `effects_take_up` restored. The caller passes the same items.
DELETE FROM laid_by_effects AS laid
USING (SELECT tasks.run_no, list.step, position, item,
             row_number() OVER (PARTITION BY tasks.run_no, list.step, item ORDER BY position) AS nth
      FROM tasks JOIN unnest($1, $2, $3, $4) AS list (run_no, step, first, behind)
           ON tasks.run_no = list.run_no AND position >= first AND position < behind
      WHERE item IS NOT NULL
        AND EXISTS (SELECT 1 FROM laid_by_effects AS any_of WHERE any_of.run_no = list.run_no AND any_of.step = list.step)) AS items
WHERE laid.run_no = items.run_no AND laid.step = items.step AND laid.item = items.item AND laid.nth = items.nth;
