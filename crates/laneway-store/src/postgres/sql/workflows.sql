-- name: definition_add
-- Adds the next version of a definition. The caller holds the lock of the key of its name. The
-- moment is the database's, unless the caller passes its own.
INSERT INTO definitions (name, no, version, dir, bundle, applied_at, applied_by)
VALUES ($1, $2, $3, $4, $5, coalesce($6::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint), $7);

-- name: definitions
-- Returns the latest definition of each name, with the newest run of that name and the actor of a
-- pause.
-- Index: runs_by_workflow.
SELECT one.name, one.no, one.version, one.dir, one.bundle, one.applied_at, one.applied_by, run.id, run.status, run.submitted_at,
       pause.by, pause.since
FROM definitions AS one
LEFT JOIN runs AS run
       ON run.no = (SELECT no FROM runs WHERE workflow = one.name AND is_visible ORDER BY no DESC LIMIT 1)
LEFT JOIN paused_workflows AS pause ON pause.name = one.name COLLATE "default"
WHERE one.no = (SELECT no FROM definitions WHERE name = one.name ORDER BY no DESC LIMIT 1)
ORDER BY one.name;

-- name: document_add
-- Stores each document once. The moment is the database's, unless the caller passes its own.
INSERT INTO workflows (version, name, document, created_at)
VALUES ($1, $2, $3, coalesce($4::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)) ON CONFLICT DO NOTHING;

-- name: latest
-- Returns what starts under a name: the latest definition, or else the version and place of the
-- newest run. Excludes hooks, whose versions have a dot: the end of a run starts them, never a
-- name. Also excludes runs from before the removal of the name.
-- Index: runs_by_workflow.
(SELECT version, dir, bundle, no FROM definitions WHERE name = $1 ORDER BY no DESC LIMIT 1)
UNION ALL
(SELECT version, dir, bundle, NULL FROM (
    SELECT version, dir, bundle, submitted_at FROM runs
    WHERE workflow = $1 AND is_visible AND strpos(version, '.') = 0 ORDER BY no DESC LIMIT 1
 ) AS newest
 WHERE submitted_at > coalesce((SELECT removed_at FROM removed_workflows WHERE name = $1), -1))
LIMIT 1;

-- name: versions_unended
-- Returns a run of each version that has unfinished runs, including runs that are being submitted.
-- Index: runs_unfinished.
SELECT min(id) FROM runs WHERE status IN ('queued', 'running') GROUP BY version;

-- name: workflow_lock
-- Blocks the start and the continuation of runs of a workflow until the transaction ends
-- (`workflows_hold`). The next statement sees the runs that have started before.
SELECT pg_advisory_xact_lock(hashtext('laneway workflow ' || $1::text), hashtext(current_schema()));

-- name: workflow_pause
-- Pauses a workflow: no run of it starts. Repetition has no effect.
INSERT INTO paused_workflows (name, by, since)
VALUES ($1, $2, coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)) ON CONFLICT DO NOTHING
RETURNING name;

-- name: workflow_removed
-- Records the removal of a name, so that earlier runs no longer start by it.
INSERT INTO removed_workflows (name, removed_at)
VALUES ($1, coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint))
ON CONFLICT (name) DO UPDATE SET removed_at = excluded.removed_at;

-- name: workflow_resume
DELETE FROM paused_workflows WHERE name = $1 RETURNING name;

-- name: workflows_hold
-- Acquires shared locks on workflows before runs of them start. `workflow_lock` conflicts with
-- these locks: without them, a pause and a starting run would each miss the other's row. Starting
-- runs do not block each other. Lock order: by name, to avoid deadlocks, and before any run. The
-- locks end with the transaction.
SELECT pg_advisory_xact_lock_shared(hashtext('laneway workflow ' || name), hashtext(current_schema()))
FROM (SELECT DISTINCT name FROM unnest($1::text[]) AS names (name) ORDER BY name) AS sorted;

-- name: workflows_paused
-- Returns those of the workflows that are paused. Uses the primary key.
SELECT name, by, since FROM paused_workflows WHERE name = ANY ($1);
