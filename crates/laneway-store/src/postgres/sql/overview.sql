-- name: backlog
-- Counts unclaimed tasks of unfinished runs by gate. Reads only rows of these runs. Takes no locks.
-- Index: runs_unfinished.
SELECT tasks.gate, count(*) FROM runs JOIN tasks ON tasks.run_no = runs.no
WHERE runs.status IN ('queued', 'running') AND runs.is_visible AND tasks.status IN ('pending', 'available')
GROUP BY tasks.gate ORDER BY tasks.gate COLLATE "C" NULLS FIRST;

-- name: outcomes
-- Returns the newest $2 runs of each workflow. Takes no locks.
-- Index: runs_by_workflow.
SELECT asked.name, run.id, run.status, run.submitted_at, run.started_at, run.finished_at
FROM unnest($1::text[]) WITH ORDINALITY AS asked (name, place)
CROSS JOIN LATERAL (
    SELECT no, id, status, submitted_at, started_at, finished_at
    FROM runs WHERE workflow = asked.name AND is_visible ORDER BY no DESC LIMIT $2
) AS run
ORDER BY asked.place, run.no DESC;

-- name: overview_ended
-- Counts the outcomes of runs that ended since $1, among the newest $2. Uses the primary key. Takes
-- no locks.
SELECT count(*) FILTER (WHERE status = 'succeeded'), count(*) FILTER (WHERE status = 'failed'),
       count(*) FILTER (WHERE status = 'canceled')
FROM (SELECT status, finished_at FROM runs WHERE is_visible ORDER BY no DESC LIMIT $2) AS newest
WHERE finished_at >= $1;

-- name: overview_events
-- Returns the events of active runs since $1, newest runs first. Active are the newest $2
-- unfinished runs, and those of the newest $2 runs that ended since $1. Reads at most $3 events and
-- returns all of them, so that the caller can detect the limit. Reads a run submitted since $1 from
-- its newest event to its first. Reads an older run event by event and stops after the first event
-- before $1. Takes no locks. Also uses primary keys.
-- Index: runs_unfinished.
SELECT event.at, event.name,
       CASE WHEN event.at >= $1 AND event.name = 'task_finished' THEN event.body::json ->> 'status' END,
       CASE WHEN event.at >= $1 AND event.name IN ('task_finished', 'task_retrying') THEN (event.body::json ->> 'took_ms')::bigint END
FROM (
    SELECT no, submitted_at FROM (
        SELECT no, submitted_at FROM runs WHERE status IN ('queued', 'running') AND is_visible ORDER BY no DESC LIMIT $2
    ) AS going
    UNION
    SELECT no, submitted_at FROM (
        SELECT no, submitted_at, finished_at FROM runs WHERE is_visible ORDER BY no DESC LIMIT $2
    ) AS newest WHERE finished_at >= $1
    ORDER BY no DESC LIMIT $2
) AS active
CROSS JOIN LATERAL (
    (SELECT at, name, body FROM events WHERE active.submitted_at >= $1 AND run_no = active.no ORDER BY seq DESC LIMIT $3)
    UNION ALL
    (WITH RECURSIVE walk AS (
        (SELECT seq, at, name, body FROM events WHERE active.submitted_at < $1 AND run_no = active.no ORDER BY seq DESC LIMIT 1)
        UNION ALL
        SELECT earlier.seq, earlier.at, earlier.name, earlier.body FROM walk CROSS JOIN LATERAL (
            SELECT seq, at, name, body FROM events WHERE run_no = active.no AND seq < walk.seq ORDER BY seq DESC LIMIT 1
        ) AS earlier
        WHERE walk.at >= $1
    )
    SELECT at, name, body FROM walk)
) AS event
LIMIT $3;

-- name: overview_failing
-- Returns runs that failed since $1, among the newest $2, newest first. Uses the primary key. Takes
-- no locks.
SELECT * FROM (
    SELECT no, id, workflow, status, reason, submitted_at, started_at, finished_at, submitted_by, owner, placement,
           closing, pauses, not_before
    FROM runs WHERE is_visible ORDER BY no DESC LIMIT $2
) AS newest
WHERE status = 'failed' AND finished_at >= $1 ORDER BY no DESC LIMIT $3;

-- name: overview_oldest
-- Returns the oldest unfinished runs, and whether each has more than $2 tasks. Excludes runs with a
-- later start time and quarantined runs. Takes no locks.
-- Index: runs_unfinished.
SELECT no, id, workflow, version, (SELECT 1 FROM tasks WHERE tasks.run_no = runs.no LIMIT 1 OFFSET $2) IS NOT NULL
FROM runs
WHERE status IN ('queued', 'running') AND is_visible AND not_before IS NULL AND no NOT IN (SELECT run_no FROM quarantine)
ORDER BY no LIMIT $1;

-- name: overview_reach
-- Returns a row if more than $1 runs exist. Uses the primary key. Takes no locks.
SELECT 1 FROM runs WHERE is_visible ORDER BY no DESC LIMIT 1 OFFSET $1;

-- name: overview_unfinished
-- Counts the newest $1 unfinished runs: running, queued, paused, and all. Takes no locks.
-- Index: runs_unfinished.
SELECT count(*) FILTER (WHERE status = 'running' AND pauses IS NULL), count(*) FILTER (WHERE status = 'queued' AND pauses IS NULL),
       count(*) FILTER (WHERE pauses IS NOT NULL), count(*)
FROM (
    SELECT status, pauses FROM runs
    WHERE status IN ('queued', 'running') AND is_visible ORDER BY no DESC LIMIT $1
) AS newest;

-- name: overview_waiting
-- Returns the $3 tasks of runs that have waited longest, except those that wait for predecessors.
-- Orders by rank, or by the start of parking. Considers these tasks of each run:
-- - the first $2
-- - $2 that are available or running
-- - the first $3 that are parked
-- - the first $3 that wait for `max_parallel`
-- Takes no locks. Also uses the primary key.
-- Index: tasks_parked, tasks_live, tasks_waiting.
SELECT run.no, task.position, task.status, task.gate, task.gate_key,
       CASE WHEN task.status = 'parked' THEN task.started_at ELSE task.rank END AS waits_by
FROM unnest($1) AS run (no)
CROSS JOIN LATERAL (
    (SELECT position, status, gate, gate_key, wait, started_at, rank FROM tasks WHERE run_no = run.no ORDER BY position LIMIT $2)
    UNION
    (SELECT position, status, gate, gate_key, wait, started_at, rank FROM tasks WHERE run_no = run.no AND status IN ('available', 'running') LIMIT $2)
    UNION
    (SELECT position, status, gate, gate_key, wait, started_at, rank FROM tasks WHERE run_no = run.no AND status = 'parked' ORDER BY position LIMIT $3)
    UNION
    (SELECT position, status, gate, gate_key, wait, started_at, rank FROM tasks WHERE run_no = run.no AND gate = 'max_parallel' ORDER BY rank, position LIMIT $3)
) AS task
WHERE CASE task.status
          WHEN 'parked' THEN task.wait IS NOT NULL AND task.started_at IS NOT NULL
          WHEN 'available' THEN task.rank IS NOT NULL
          WHEN 'pending' THEN task.rank IS NOT NULL AND task.gate NOT IN ('needs', 'run_at', 'group', 'level')
          ELSE false END
ORDER BY waits_by, run.no, task.position LIMIT $3;

-- name: parked_count
-- Counts tasks that wait for a signal, a moment, a child run or their items. Takes no locks.
-- Index: tasks_parked.
SELECT count(*) FROM tasks WHERE status = 'parked';
