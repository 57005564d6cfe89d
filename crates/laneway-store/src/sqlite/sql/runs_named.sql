-- The same among the runs of one workflow (?2). Index: runs_by_workflow.
SELECT no, id, workflow, status, reason, submitted_at, started_at, finished_at, submitted_by, owner, placement,
       closing, pauses, not_before
FROM runs
WHERE is_visible = 1 AND (?1 IS NULL OR instr(?1, ' ' || status || ' ') > 0) AND workflow = ?2
  AND no < CASE WHEN ?4 IS NULL THEN 9223372036854775807 ELSE (SELECT behind.no FROM runs AS behind WHERE behind.id = ?4) END
  AND no >= CASE WHEN ?8 IS NULL THEN 0 ELSE (SELECT last.no FROM runs AS last WHERE last.id = ?8) END
  AND (?5 IS NULL OR submitted_at >= ?5) AND (?6 IS NULL OR submitted_at < ?6)
  AND (?7 IS NULL OR substr(workflow, 1, length(?7)) = ?7 OR substr(id, 1, length(?7)) = lower(?7)
       OR substr(tail, 1, length(?7)) = lower(?7))
ORDER BY no DESC LIMIT ?3;
