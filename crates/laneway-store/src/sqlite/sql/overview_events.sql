-- What attempts of a run did, newest first. Along the primary key.
SELECT at, name, json_extract(body, '$.status'), json_extract(body, '$.took_ms')
FROM events WHERE run_no = ?1 AND name IN ('task_started', 'task_finished', 'task_retrying') ORDER BY seq DESC;
