-- A locked run, if it may go: it is over and not set aside, another one of its workflow is newer, and its end has nothing
-- left to start, and no run that started it goes on.
SELECT no, key FROM runs
WHERE id = $1 AND status IN ('succeeded', 'failed', 'canceled') AND is_visible
  AND EXISTS (SELECT FROM runs AS newer WHERE newer.workflow = runs.workflow AND newer.no > runs.no AND newer.is_visible)
  AND NOT EXISTS (SELECT FROM quarantine WHERE quarantine.run_no = runs.no)
  AND NOT EXISTS (SELECT FROM firings WHERE firings.run = runs.id)
  AND NOT EXISTS (SELECT FROM runs AS above WHERE above.id = (runs.parent::json ->> 'run') AND above.status IN ('queued', 'running'));
