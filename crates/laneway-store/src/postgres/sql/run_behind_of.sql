-- The same among the runs of one workflow ($3). Index: runs_by_workflow.
SELECT id, submitted_at FROM runs
WHERE is_visible AND workflow = $3 AND ($1::text IS NULL OR no < (SELECT behind.no FROM runs AS behind WHERE behind.id = $1))
ORDER BY no DESC LIMIT 1 OFFSET $2;
