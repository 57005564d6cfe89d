-- name: backlog
-- Counts unclaimed tasks of unfinished runs by gate. Reads only rows of these runs.
-- Index: runs_unfinished.
SELECT tasks.gate, count(*) FROM runs CROSS JOIN tasks ON tasks.run_no = runs.no
WHERE runs.status IN ('queued', 'running') AND runs.is_visible = 1 AND tasks.status IN ('pending', 'available')
GROUP BY tasks.gate ORDER BY tasks.gate;

-- name: outcomes
-- Returns the newest ?2 runs of a workflow.
-- Index: runs_by_workflow.
SELECT id, status, submitted_at, started_at, finished_at
FROM runs WHERE workflow = ?1 AND is_visible = 1 ORDER BY no DESC LIMIT ?2;

-- name: overview_active
-- Returns runs with possible events since ?1, newest first. These are the newest ?2 unfinished
-- runs, and those of the newest ?2 runs that ended since ?1. Also uses the primary key.
-- Index: runs_unfinished.
SELECT no FROM (
    SELECT no FROM (
        SELECT no FROM runs INDEXED BY runs_unfinished
        WHERE status IN ('queued', 'running') AND is_visible = 1 ORDER BY no DESC LIMIT ?2
    )
    UNION
    SELECT no FROM (SELECT no, finished_at FROM runs WHERE is_visible = 1 ORDER BY no DESC LIMIT ?2) WHERE finished_at >= ?1
)
ORDER BY no DESC LIMIT ?2;

-- name: overview_ended
-- Counts the outcomes of runs that ended since ?1, among the newest ?2. Uses the primary key.
SELECT count(*) FILTER (WHERE status = 'succeeded'), count(*) FILTER (WHERE status = 'failed'),
       count(*) FILTER (WHERE status = 'canceled')
FROM (SELECT status, finished_at FROM runs WHERE is_visible = 1 ORDER BY no DESC LIMIT ?2)
WHERE finished_at >= ?1;

-- name: overview_events
-- Returns the events of a run, newest first. Status and duration are set only for attempts that
-- ended since ?2. Returns every event, so that the number of rows shows how many were read. Uses
-- the primary key.
SELECT at, name,
       CASE WHEN at >= ?2 AND name = 'task_finished' THEN json_extract(body, '$.status') END,
       CASE WHEN at >= ?2 AND name IN ('task_finished', 'task_retrying') THEN json_extract(body, '$.took_ms') END
FROM events WHERE run_no = ?1 ORDER BY seq DESC;

-- name: overview_failing
-- Returns runs that failed since ?1, among the newest ?2, newest first. Uses the primary key.
SELECT * FROM (
    SELECT no, id, workflow, status, reason, submitted_at, started_at, finished_at, submitted_by, owner, placement,
           closing, pauses, not_before
    FROM runs WHERE is_visible = 1 ORDER BY no DESC LIMIT ?2
)
WHERE status = 'failed' AND finished_at >= ?1 ORDER BY no DESC LIMIT ?3;

-- name: overview_oldest
-- Returns the oldest unfinished runs, and whether each has more than ?2 tasks. Excludes runs with a
-- later start time and quarantined runs.
-- Index: runs_unfinished.
SELECT no, id, workflow, version, (SELECT 1 FROM tasks WHERE tasks.run_no = runs.no LIMIT 1 OFFSET ?2) IS NOT NULL
FROM runs INDEXED BY runs_unfinished
WHERE status IN ('queued', 'running') AND is_visible = 1 AND not_before IS NULL AND no NOT IN (SELECT run_no FROM quarantine)
ORDER BY no LIMIT ?1;

-- name: overview_reach
-- Returns a row if more than ?1 runs exist. Uses the primary key.
SELECT 1 FROM runs WHERE is_visible = 1 ORDER BY no DESC LIMIT 1 OFFSET ?1;

-- name: overview_unfinished
-- Counts the newest ?1 unfinished runs: running, queued, paused, and all.
-- Index: runs_unfinished.
SELECT count(*) FILTER (WHERE status = 'running' AND pauses IS NULL), count(*) FILTER (WHERE status = 'queued' AND pauses IS NULL),
       count(*) FILTER (WHERE pauses IS NOT NULL), count(*)
FROM (
    SELECT status, pauses FROM runs INDEXED BY runs_unfinished
    WHERE status IN ('queued', 'running') AND is_visible = 1 ORDER BY no DESC LIMIT ?1
);

-- name: overview_waiting
-- Returns waiting tasks of a run, except those that wait for predecessors. The last column orders
-- them: the rank, or the start of parking. Considers these tasks:
-- - the first ?2
-- - ?2 that are available or running
-- - the first ?3 that are parked
-- - the first ?3 that wait for `max_parallel`
-- Also uses the primary key.
-- Index: tasks_parked, tasks_live, tasks_waiting.
SELECT position, status, gate, gate_key, CASE WHEN status = 'parked' THEN started_at ELSE rank END
FROM (
    SELECT * FROM (SELECT position, status, gate, gate_key, wait, started_at, rank FROM tasks WHERE run_no = ?1 ORDER BY position LIMIT ?2)
    UNION
    SELECT * FROM (
        SELECT position, status, gate, gate_key, wait, started_at, rank FROM tasks INDEXED BY tasks_live
        WHERE run_no = ?1 AND status IN ('available', 'running') LIMIT ?2
    )
    UNION
    SELECT * FROM (
        SELECT position, status, gate, gate_key, wait, started_at, rank FROM tasks INDEXED BY tasks_parked
        WHERE run_no = ?1 AND status = 'parked' ORDER BY position LIMIT ?3
    )
    UNION
    SELECT * FROM (
        SELECT position, status, gate, gate_key, wait, started_at, rank FROM tasks INDEXED BY tasks_waiting
        WHERE run_no = ?1 AND gate = 'max_parallel' ORDER BY rank, position LIMIT ?3
    )
)
WHERE CASE status
          WHEN 'parked' THEN wait IS NOT NULL AND started_at IS NOT NULL
          WHEN 'available' THEN rank IS NOT NULL
          WHEN 'pending' THEN rank IS NOT NULL AND gate NOT IN ('needs', 'run_at', 'group', 'level')
          ELSE 0 END;

-- name: parked_count
-- Counts tasks that wait for a signal, a moment, a child run or their items.
-- Index: tasks_parked.
SELECT count(*) FROM tasks INDEXED BY tasks_parked WHERE status = 'parked';
