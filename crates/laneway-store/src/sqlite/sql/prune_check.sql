-- A run, if it may go: it is over and not set aside, another one of its workflow is newer, and its end has nothing left to
-- start, and no run that started it goes on; or its removal has begun.
SELECT no, key, last_event, (SELECT count(*) FROM tasks WHERE run_no = no) FROM runs
WHERE id = ?1 AND status IN ('succeeded', 'failed', 'canceled')
  AND (is_visible = 0
       OR EXISTS (SELECT 1 FROM runs AS newer WHERE newer.workflow = runs.workflow AND newer.no > runs.no AND newer.is_visible = 1))
  AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
  AND NOT EXISTS (SELECT 1 FROM firings WHERE firings.run = runs.id)
  AND NOT EXISTS (SELECT 1 FROM runs AS above WHERE above.id = json_extract(runs.parent, '$.run') AND above.status IN ('queued', 'running'));
