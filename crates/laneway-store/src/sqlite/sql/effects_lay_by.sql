-- What the items of a step (?2) did to the world is laid by before they go, by their values. Along the primary keys.
INSERT INTO laid_by_effects
    (run_no, step, item, nth, name, key, status, attempt, session, execution, started_at, finished_at, took_ms,
    exit_code, stdout, output, lacks, settled_by, token)
SELECT run_no, ?2, item, nth, name, key, status, attempt, session, execution, started_at, finished_at, took_ms,
exit_code, stdout, output, lacks, settled_by, token
FROM effects JOIN (SELECT position, item, row_number() OVER (PARTITION BY item ORDER BY position) AS nth FROM tasks
      WHERE run_no = ?1 AND position >= ?3 AND position < ?4 AND item IS NOT NULL) AS items
     USING (position)
WHERE run_no = ?1;
