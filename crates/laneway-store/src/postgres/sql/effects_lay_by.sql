-- What the items of steps did to the world is laid by before they go, by their values. Along the primary keys; their runs are locked.
INSERT INTO laid_by_effects
    (run_no, step, item, nth, name, key, status, attempt, session, execution, started_at, finished_at, took_ms,
    exit_code, stdout, output, lacks, settled_by, token)
SELECT run_no, step, item, nth, name, key, status, attempt, session, execution, started_at, finished_at, took_ms,
exit_code, stdout, output, lacks, settled_by, token
FROM effects JOIN (SELECT tasks.run_no, list.step, position, item,
             row_number() OVER (PARTITION BY tasks.run_no, list.step, item ORDER BY position) AS nth
      FROM tasks JOIN unnest($1, $2, $3, $4) AS list (run_no, step, first, behind)
           ON tasks.run_no = list.run_no AND position >= first AND position < behind
      WHERE item IS NOT NULL) AS items
     USING (run_no, position);
