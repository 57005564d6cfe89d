-- The newest of each name, by name, with the newest run of that name and who paused it. Index: runs_by_workflow.
SELECT one.name, one.no, one.version, one.dir, one.bundle, one.applied_at, one.applied_by, run.id, run.status, run.submitted_at,
       pause.by, pause.since
FROM definitions AS one
LEFT JOIN runs AS run
       ON run.no = (SELECT no FROM runs WHERE workflow = one.name AND is_visible ORDER BY no DESC LIMIT 1)
LEFT JOIN paused_workflows AS pause ON pause.name = one.name COLLATE "default"
WHERE one.no = (SELECT no FROM definitions WHERE name = one.name ORDER BY no DESC LIMIT 1)
ORDER BY one.name;
