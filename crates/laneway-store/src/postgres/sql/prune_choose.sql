-- Runs of a workflow below a number ($2) that are over and may go, oldest first: those up to a number ($3), and those that
-- ended before a moment ($4). Not one that is set aside, nor one whose end has yet to start something, nor one whose parent goes on. Index: runs_by_workflow.
SELECT no, id, workflow, status, finished_at FROM runs
WHERE workflow = $1 AND no < $2 AND (no <= $3 OR finished_at < $4)
  AND is_visible AND status IN ('succeeded', 'failed', 'canceled')
  AND NOT EXISTS (SELECT FROM quarantine WHERE quarantine.run_no = runs.no)
  AND NOT EXISTS (SELECT FROM firings WHERE firings.run = runs.id)
  AND NOT EXISTS (SELECT FROM runs AS above WHERE above.id = (runs.parent::json ->> 'run') AND above.status IN ('queued', 'running'))
ORDER BY no LIMIT $5;
