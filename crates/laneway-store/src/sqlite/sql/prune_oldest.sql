-- Runs that are over and may go, of whatever workflow, oldest first, with what they take up. Along the primary key.
SELECT no, id, workflow, status, finished_at, bytes FROM runs JOIN run_bytes ON run_no = no
WHERE is_visible = 1 AND status IN ('succeeded', 'failed', 'canceled')
  AND EXISTS (SELECT 1 FROM runs AS newer WHERE newer.workflow = runs.workflow AND newer.no > runs.no AND newer.is_visible = 1)
  AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
  AND NOT EXISTS (SELECT 1 FROM firings WHERE firings.run = runs.id)
  AND NOT EXISTS (SELECT 1 FROM runs AS above WHERE above.id = json_extract(runs.parent, '$.run') AND above.status IN ('queued', 'running'))
ORDER BY no LIMIT ?1;
