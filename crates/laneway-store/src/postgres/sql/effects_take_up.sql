-- Items of steps whose lists were made anew take up what those of the same values did before. Along the primary keys; their runs are locked.
INSERT INTO effects
    (run_no, position, name, key, status, attempt, session, execution, started_at, finished_at, took_ms, exit_code,
    stdout, output, lacks, settled_by, token)
SELECT run_no, position, name, key, status, attempt, session, execution, started_at, finished_at, took_ms, exit_code,
stdout, output, lacks, settled_by, token
FROM laid_by_effects JOIN (SELECT tasks.run_no, list.step, position, item,
             row_number() OVER (PARTITION BY tasks.run_no, list.step, item ORDER BY position) AS nth
      FROM tasks JOIN unnest($1, $2, $3, $4) AS list (run_no, step, first, behind)
           ON tasks.run_no = list.run_no AND position >= first AND position < behind
      WHERE item IS NOT NULL
        AND EXISTS (SELECT 1 FROM laid_by_effects AS any_of WHERE any_of.run_no = list.run_no AND any_of.step = list.step)) AS items
     USING (run_no, step, item, nth);
