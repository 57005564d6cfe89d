-- What happened in runs since a moment, newest runs first: of the newest $2 that go on, and of the newest $2 those that ended after it.
-- $3 events are read at most and all of them given, so that whoever counts them knows. A run that is younger than the moment is read from
-- its newest event to its first; an older one event by event until one is older than the moment, which is the last of it.
-- Locks nothing. Index: runs_unfinished. Along primary keys.
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
