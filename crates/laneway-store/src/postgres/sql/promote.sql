-- name: follow_ups_add
-- Records work that a change makes possible in other runs. Never blocks: rows have no unique key
-- except their number.
INSERT INTO follow_ups (kind, subject, parent, position) SELECT * FROM unnest($1, $2, $3, $4);

-- name: follow_ups_done
-- Deletes completed follow-ups. The caller passes only the records it read: other records stand for
-- changes it did not see.
DELETE FROM follow_ups WHERE seq = ANY ($1);

-- name: follow_ups_left
-- Returns distinct follow-ups up to number $1, and the largest number. A live process completes its
-- follow-ups at once. A record that two sweeps find therefore belongs to a process that died. Uses
-- the primary key.
SELECT (SELECT max(seq) FROM follow_ups), NULL, NULL, NULL, NULL
UNION ALL
SELECT DISTINCT NULL::bigint, kind, subject, parent, position
FROM (SELECT kind, subject, parent, position FROM follow_ups WHERE seq <= $1 ORDER BY seq LIMIT 1000) AS oldest;

-- name: follow_ups_of
-- Returns the numbers of all records of a follow-up. The caller reads them before their subject, so
-- that it deletes only records whose change it saw.
-- Index: follow_ups_by_subject.
SELECT seq FROM follow_ups WHERE subject = $2 AND kind = $1;

-- name: needs_read
-- Returns the predecessor counters of needs sets. Uses the primary key.
SELECT run_no, set_no, unsettled, succeeded, failed, passed_over
FROM needs_sets JOIN unnest($1, $2) AS wanted (run_no, set_no) USING (run_no, set_no);

-- name: needs_write
-- Replaces predecessor counters. The caller holds the locks of the runs.
INSERT INTO needs_sets (run_no, set_no, unsettled, succeeded, failed, passed_over)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6)
ON CONFLICT (run_no, set_no) DO UPDATE
SET unsettled = excluded.unsettled, succeeded = excluded.succeeded,
    failed = excluded.failed, passed_over = excluded.passed_over;

-- name: promote_due
-- Returns tasks to check now: at a gate that time opens, or parked. Excludes quarantined runs. Also
-- returns tasks at the gate `node` whose class a session now accepts. A node that joined at the
-- moment of their check did not see them.
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

-- name: promote_due_runs
-- Returns runs whose requested start time has come. Excludes quarantined runs.
-- Index: runs_for_later.
SELECT no, id FROM runs
WHERE not_before IS NOT NULL
  AND not_before <= coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
  AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
ORDER BY not_before, no LIMIT 1000;

-- name: promote_look
-- Returns the next timed moment, as `promote_next`, and whether a node has work now. Work is a row
-- of `promote_due`, `promote_due_runs` or `promote_overdue_runs`, or a remaining follow-up. An idle
-- node runs no other query. MATERIALIZED keeps the server from computing the moment twice.
-- Index: tasks_timed, tasks_due, runs_for_later, runs_with_deadline, tasks_for_nodes,
-- follow_ups_pkey.
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

-- name: promote_next
-- Returns when time next opens a gate, wakes a parked task, or starts or ends a run. Without a
-- quarantined run, the result is the first entry of each index. Otherwise each walk ends at the
-- first entry of a run outside quarantine. The branches are separate because the planner
-- underestimates the rows that an anti-join leaves. With an anti-join alone it would read and sort
-- every waiting task.
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

-- name: promote_overdue_runs
-- Returns runs whose timeout has passed. Excludes quarantined runs.
-- Index: runs_with_deadline.
SELECT no, id FROM runs
WHERE deadline_at IS NOT NULL AND status = 'running'
  AND deadline_at <= coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
  AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = runs.no)
ORDER BY deadline_at, no LIMIT 1000;
