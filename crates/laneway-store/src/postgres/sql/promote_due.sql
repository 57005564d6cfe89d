-- Tasks whose `run_at` has passed, but for runs that are set aside. Index: tasks_timed.
SELECT run_no, runs.id, position FROM tasks JOIN runs ON runs.no = tasks.run_no
WHERE gate = 'run_at' AND run_at <= coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
  AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
ORDER BY run_at LIMIT 1000;
