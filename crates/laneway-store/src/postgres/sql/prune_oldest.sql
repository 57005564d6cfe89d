-- Runs that are over and may go, of whatever workflow, oldest first, with what they take up. Along the primary key.
SELECT no, id, workflow, status, finished_at, bytes FROM runs JOIN run_bytes ON run_no = no
WHERE is_visible AND status IN ('succeeded', 'failed', 'canceled')
  AND EXISTS (SELECT FROM runs AS newer WHERE newer.workflow = runs.workflow AND newer.no > runs.no AND newer.is_visible)
  AND NOT EXISTS (SELECT FROM quarantine WHERE quarantine.run_no = runs.no)
  AND NOT EXISTS (SELECT FROM firings WHERE firings.run = runs.id)
  AND NOT EXISTS (SELECT FROM runs AS above WHERE above.id = (runs.parent::json ->> 'run') AND above.status IN ('queued', 'running'))
ORDER BY no LIMIT $1;
