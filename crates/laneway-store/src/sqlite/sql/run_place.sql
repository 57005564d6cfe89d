-- How many runs of a workflow are queued before one, and how many there are, but for those that are for later.
-- Index: runs_queued.
SELECT count(*) FILTER (WHERE no < ?2), count(*) FROM runs
WHERE workflow = ?1 AND status = 'queued' AND is_visible = 1 AND not_before IS NULL;
