-- Whether callbacks can be sent now, or are being sent by a session; and whether a run that is over has hooks that nobody has
-- submitted and whose owner, if it had one, is gone. Nothing is done for a run that is set aside.
-- Index: tasks_available, tasks_for_nodes, tasks_timed, tasks_held.
SELECT EXISTS (SELECT 1 FROM tasks WHERE class = (SELECT no FROM classes WHERE text = ?1) AND status = 'available' AND run_no NOT IN (SELECT run_no FROM quarantine))
       OR EXISTS (SELECT 1 FROM tasks WHERE class = (SELECT no FROM classes WHERE text = ?1) AND gate = 'node' AND run_no NOT IN (SELECT run_no FROM quarantine))
       OR EXISTS (SELECT 1 FROM tasks WHERE class = (SELECT no FROM classes WHERE text = ?1) AND wake_at <= ?3 AND run_no NOT IN (SELECT run_no FROM quarantine))
       OR EXISTS (SELECT 1 FROM tasks WHERE class = (SELECT no FROM classes WHERE text = ?1) AND status = 'running' AND session = ?2 AND run_no NOT IN (SELECT run_no FROM quarantine)),
       EXISTS (SELECT 1 FROM firings WHERE key = 'hooks' OR key = 'hooks here'
               AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = firings.run AND runs.owner IS NOT NULL));
