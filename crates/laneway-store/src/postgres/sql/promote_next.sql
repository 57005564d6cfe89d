-- When time will open the next gate, wake the next parked task, or begin or end the next run. Usually no run is set aside, and the
-- answer is the first entry of each index. If one is, the walks end at the first entry of a run that is not. That is apart,
-- because the planner thinks so little of what an anti-join leaves that it would rather read and sort every task that waits.
-- Index: tasks_timed, tasks_due, runs_for_later, runs_with_deadline.
SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM quarantine) THEN least(
    (SELECT min(wake_at) FROM tasks WHERE wake_at IS NOT NULL),
    (SELECT min(due_at) FROM tasks WHERE due_at IS NOT NULL),
    (SELECT min(not_before) FROM runs WHERE not_before IS NOT NULL),
    (SELECT min(deadline_at) FROM runs WHERE deadline_at IS NOT NULL AND status = 'running'))
ELSE least(
    (SELECT wake_at FROM tasks
     WHERE wake_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = tasks.run_no)
     ORDER BY wake_at LIMIT 1),
    (SELECT due_at FROM tasks
     WHERE due_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = tasks.run_no)
     ORDER BY due_at LIMIT 1),
    (SELECT not_before FROM runs
     WHERE not_before IS NOT NULL AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
     ORDER BY not_before LIMIT 1),
    (SELECT deadline_at FROM runs
     WHERE deadline_at IS NOT NULL AND status = 'running'
       AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
     ORDER BY deadline_at LIMIT 1))
END;
