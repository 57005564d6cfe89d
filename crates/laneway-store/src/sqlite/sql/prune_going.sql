-- Runs whose removal did not come to its end. Index: runs_going.
SELECT no, id, workflow, status, finished_at FROM runs
WHERE is_visible = 0 AND status IN ('succeeded', 'failed', 'canceled') ORDER BY no;
