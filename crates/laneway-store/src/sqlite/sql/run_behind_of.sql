-- The same among the runs of one workflow (?3). Index: runs_by_workflow.
SELECT id, submitted_at FROM runs
WHERE is_visible = 1 AND workflow = ?3 AND no < CASE WHEN ?1 IS NULL THEN 9223372036854775807 ELSE (SELECT behind.no FROM runs AS behind WHERE behind.id = ?1) END
ORDER BY no DESC LIMIT 1 OFFSET ?2;
