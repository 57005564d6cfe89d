-- The newest runs of a workflow, and how they went. Index: runs_by_workflow.
SELECT id, status, submitted_at, started_at, finished_at
FROM runs WHERE workflow = ?1 AND is_visible = 1 ORDER BY no DESC LIMIT ?2;
