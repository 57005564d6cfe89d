-- The next moment that time has something to say about, as in promote_next.sql, and whether promote_due.sql,
-- promote_due_runs.sql or promote_overdue_runs.sql would find something now, or a follow-up is left: an idle node asks nothing else.
-- Materialized, so that the moment is looked for once.
-- Index: tasks_timed, tasks_due, runs_for_later, runs_with_deadline, tasks_for_nodes, follow_ups_pkey.
WITH next AS MATERIALIZED (
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
    END AS at
)
SELECT next.at,
    coalesce(next.at <= coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint), false)
    OR EXISTS (
        SELECT 1 FROM tasks
        WHERE gate = 'node' AND EXISTS (SELECT 1 FROM takers WHERE takers.class = tasks.class)
          AND run_no + 0 <> ALL (ARRAY(SELECT quarantine.run_no FROM quarantine)))
    OR EXISTS (SELECT 1 FROM follow_ups WHERE seq > 0)
FROM next;
