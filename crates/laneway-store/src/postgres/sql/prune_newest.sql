-- The number of a workflow's run that has so many newer ones. Index: runs_by_workflow.
SELECT no FROM runs WHERE workflow = $1 AND is_visible ORDER BY no DESC LIMIT 1 OFFSET $2;
