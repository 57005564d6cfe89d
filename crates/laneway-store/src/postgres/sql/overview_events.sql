-- What attempts did since a moment, newest runs first: of those that go on, and of the newest $2 that ended after it. Of each run no
-- more than the newest $3 events are looked at, and no more than that are given. Locks nothing. Index: runs_unfinished; along primary keys.
SELECT event.at, event.name, event.body::json ->> 'status', (event.body::json ->> 'took_ms')::bigint
FROM (
    SELECT no FROM runs WHERE status IN ('queued', 'running') AND is_visible
    UNION
    SELECT no FROM (SELECT no, finished_at FROM runs WHERE is_visible ORDER BY no DESC LIMIT $2) AS newest WHERE finished_at >= $1
    ORDER BY no DESC LIMIT $2
) AS active
CROSS JOIN LATERAL (
    SELECT at, name, body FROM events WHERE run_no = active.no ORDER BY seq DESC LIMIT $3
) AS event
WHERE event.at >= $1 AND event.name IN ('task_started', 'task_finished', 'task_retrying')
LIMIT $3;
