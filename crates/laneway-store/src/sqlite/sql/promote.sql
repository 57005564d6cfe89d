-- name: needs_read
-- Returns the predecessor counters of a needs set.
SELECT unsettled, succeeded, failed, passed_over FROM needs_sets WHERE run_no = ?1 AND set_no = ?2;

-- name: needs_write
-- Replaces predecessor counters, at submit and when a run is reopened.
INSERT INTO needs_sets (run_no, set_no, unsettled, succeeded, failed, passed_over)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (run_no, set_no) DO UPDATE
SET unsettled = excluded.unsettled, succeeded = excluded.succeeded,
    failed = excluded.failed, passed_over = excluded.passed_over;

-- name: promote_due
-- Returns tasks to check now: at a gate that time opens, or parked. Excludes quarantined runs.
-- Index: tasks_timed, tasks_due.
SELECT run_no, position FROM (
    SELECT * FROM (
        SELECT run_no, position FROM tasks
        WHERE wake_at IS NOT NULL AND wake_at <= ?1 AND run_no NOT IN (SELECT run_no FROM quarantine)
        ORDER BY wake_at LIMIT 1000)
    UNION ALL
    SELECT * FROM (
        SELECT run_no, position FROM tasks
        WHERE due_at IS NOT NULL AND due_at <= ?1 AND run_no NOT IN (SELECT run_no FROM quarantine)
        ORDER BY due_at LIMIT 1000)
);

-- name: promote_due_runs
-- Returns runs whose requested start time has come. Excludes quarantined runs.
-- Index: runs_for_later.
SELECT no FROM runs
WHERE not_before IS NOT NULL AND not_before <= ?1 AND no NOT IN (SELECT run_no FROM quarantine)
ORDER BY not_before, no;

-- name: promote_next
-- Returns when time next opens a gate, wakes a parked task, or starts or ends a run. Each part
-- walks an index and ends at the first entry whose run is not quarantined.
SELECT min(at) FROM (
    SELECT min(wake_at) AS at FROM tasks
    WHERE wake_at IS NOT NULL AND run_no NOT IN (SELECT run_no FROM quarantine)
    UNION ALL
    SELECT min(due_at) FROM tasks
    WHERE due_at IS NOT NULL AND run_no NOT IN (SELECT run_no FROM quarantine)
    UNION ALL
    SELECT min(not_before) FROM runs
    WHERE not_before IS NOT NULL AND no NOT IN (SELECT run_no FROM quarantine)
    UNION ALL
    SELECT min(deadline_at) FROM runs
    WHERE deadline_at IS NOT NULL AND status = 'running' AND no NOT IN (SELECT run_no FROM quarantine)
);

-- name: promote_overdue_runs
-- Returns runs whose timeout has passed. Excludes quarantined runs.
-- Index: runs_with_deadline.
SELECT no FROM runs
WHERE deadline_at IS NOT NULL AND status = 'running' AND deadline_at <= ?1
  AND no NOT IN (SELECT run_no FROM quarantine)
ORDER BY deadline_at, no;
