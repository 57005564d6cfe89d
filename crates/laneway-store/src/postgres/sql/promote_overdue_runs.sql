-- Runs whose timeout has passed, but for those that are set aside. Index: runs_with_deadline.
SELECT no, id FROM runs
WHERE deadline_at IS NOT NULL AND status = 'running'
  AND deadline_at <= coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
  AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
ORDER BY deadline_at, no LIMIT 1000;
