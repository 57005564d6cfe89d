-- name: definition_add
-- Adds the next version of a definition.
INSERT INTO definitions (name, no, version, dir, bundle, applied_at, applied_by) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);

-- name: definitions
-- Returns the latest definition of each name, with the newest run of that name and the actor of a
-- pause.
-- Index: runs_by_workflow.
SELECT one.name, one.no, one.version, one.dir, one.bundle, one.applied_at, one.applied_by, run.id, run.status, run.submitted_at,
       pause.by, pause.since
FROM definitions AS one
LEFT JOIN runs AS run
       ON run.no = (SELECT no FROM runs WHERE workflow = one.name AND is_visible = 1 ORDER BY no DESC LIMIT 1)
LEFT JOIN paused_workflows AS pause ON pause.name = one.name
WHERE one.no = (SELECT no FROM definitions WHERE name = one.name ORDER BY no DESC LIMIT 1)
ORDER BY one.name;

-- name: latest
-- Returns what starts under a name: the latest definition, or else the version and place of the
-- newest run. Excludes hooks, whose versions have a dot: the end of a run starts them, never a
-- name. Also excludes runs from before the removal of the name.
-- Index: runs_by_workflow.
SELECT version, dir, bundle, no FROM (
    SELECT version, dir, bundle, no FROM definitions WHERE name = ?1 ORDER BY no DESC LIMIT 1
)
UNION ALL
SELECT version, dir, bundle, NULL FROM (
    SELECT version, dir, bundle, submitted_at FROM runs WHERE workflow = ?1 AND is_visible = 1 AND instr(version, '.') = 0
    ORDER BY no DESC LIMIT 1
)
WHERE submitted_at > coalesce((SELECT removed_at FROM removed_workflows WHERE name = ?1), -1)
LIMIT 1;

-- name: versions_unended
-- Returns a run of each version that has unfinished runs, including runs that are being submitted.
-- Index: runs_unfinished.
SELECT min(id) FROM runs INDEXED BY runs_unfinished WHERE status IN ('queued', 'running') GROUP BY version;

-- name: workflow_pause
-- Pauses a workflow: no run of it starts. Repetition has no effect.
INSERT INTO paused_workflows (name, by, since) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;

-- name: workflow_removed
-- Records the removal of a name, so that earlier runs no longer start by it.
INSERT INTO removed_workflows (name, removed_at) VALUES (?1, ?2)
ON CONFLICT (name) DO UPDATE SET removed_at = excluded.removed_at;

-- name: workflow_resume
DELETE FROM paused_workflows WHERE name = ?1;
