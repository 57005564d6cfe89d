-- When time will open the next gate, or end the next run: a walk along an index that ends at the first entry whose
-- run is not set aside.
SELECT least(
    (SELECT wake_at FROM tasks
     WHERE wake_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = tasks.run_no)
     ORDER BY wake_at LIMIT 1),
    (SELECT deadline_at FROM runs
     WHERE deadline_at IS NOT NULL AND status = 'running'
       AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
     ORDER BY deadline_at LIMIT 1));
