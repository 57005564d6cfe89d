-- What happened in a run, newest first, with what its holder said of an attempt that ended after ?2. Every event, so that whoever reads
-- so many has read no more. Along the primary key.
SELECT at, name,
       CASE WHEN at >= ?2 AND name = 'task_finished' THEN json_extract(body, '$.status') END,
       CASE WHEN at >= ?2 AND name IN ('task_finished', 'task_retrying') THEN json_extract(body, '$.took_ms') END
FROM events WHERE run_no = ?1 ORDER BY seq DESC;
