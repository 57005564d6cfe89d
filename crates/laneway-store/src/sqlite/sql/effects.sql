-- What the steps of a run did to the world, without what they printed, and whether nobody runs what was started. Along the
-- primary keys.
SELECT effects.position, name, key, effects.status, effects.attempt, effects.started_at, effects.finished_at, effects.took_ms,
       effects.exit_code, coalesce(octet_length(stdout), 0), coalesce(octet_length(effects.output), 0), lacks, settled_by,
       effects.status = 'started'
       AND NOT (tasks.status = 'running' AND tasks.attempt = effects.attempt AND tasks.session = effects.session)
FROM effects JOIN tasks ON tasks.run_no = effects.run_no AND tasks.position = effects.position
WHERE effects.run_no = ?1 ORDER BY effects.position, name, key;
