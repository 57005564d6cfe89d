-- Runs that failed since a moment, of the newest ?2, newest first. Along the primary key.
SELECT * FROM (
    SELECT no, id, workflow, status, reason, submitted_at, started_at, finished_at, submitted_by, owner, placement,
           closing, pauses, not_before
    FROM runs WHERE is_visible = 1 ORDER BY no DESC LIMIT ?2
)
WHERE status = 'failed' AND finished_at >= ?1 ORDER BY no DESC LIMIT ?3;
