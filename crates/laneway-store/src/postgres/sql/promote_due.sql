-- Tasks that are to be looked at by now, but for runs that are set aside: at a gate that time opens, or parked. Those for which no node was there, and is now,
-- are among them: a node that joined in the very moment in which they were looked at did not see them.
-- Index: tasks_timed, tasks_due, tasks_for_nodes.
SELECT due.run_no, runs.id, due.position
FROM (
    (SELECT run_no, position FROM tasks
     WHERE wake_at IS NOT NULL
       AND wake_at <= coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
       AND run_no + 0 <> ALL (ARRAY(SELECT quarantine.run_no FROM quarantine))
     ORDER BY wake_at LIMIT 1000)
    UNION ALL
    (SELECT run_no, position FROM tasks
     WHERE due_at IS NOT NULL
       AND due_at <= coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
       AND run_no + 0 <> ALL (ARRAY(SELECT quarantine.run_no FROM quarantine))
     ORDER BY due_at LIMIT 1000)
    UNION ALL
    (SELECT run_no, position FROM tasks
     WHERE gate = 'node' AND EXISTS (SELECT 1 FROM takers WHERE takers.class = tasks.class)
       AND run_no + 0 <> ALL (ARRAY(SELECT quarantine.run_no FROM quarantine)) LIMIT 1000)
) AS due
JOIN runs ON runs.no = due.run_no;
