-- Tasks that are to be looked at by now, but for runs that are set aside. Index: tasks_timed.
SELECT run_no, runs.id, position FROM tasks JOIN runs ON runs.no = tasks.run_no
WHERE wake_at IS NOT NULL AND wake_at <= coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
  AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
ORDER BY wake_at LIMIT 1000;
