-- Runs of which something may have happened since a moment, newest first: of the newest ?2 that go on, and of the newest ?2 those that
-- ended after it. Index: runs_unfinished. Along the primary key.
SELECT no FROM (
    SELECT no FROM (
        SELECT no FROM runs INDEXED BY runs_unfinished
        WHERE status IN ('queued', 'running') AND is_visible = 1 ORDER BY no DESC LIMIT ?2
    )
    UNION
    SELECT no FROM (SELECT no, finished_at FROM runs WHERE is_visible = 1 ORDER BY no DESC LIMIT ?2) WHERE finished_at >= ?1
)
ORDER BY no DESC LIMIT ?2;
