-- Runs that were submitted for a moment that has come, but for those that are set aside. Index: runs_for_later.
SELECT no, id FROM runs
WHERE not_before IS NOT NULL
  AND not_before <= coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
  AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
ORDER BY not_before, no LIMIT 1000;
