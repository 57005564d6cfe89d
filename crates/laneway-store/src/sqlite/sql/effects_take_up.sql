-- Items of a step (?2) whose list was made anew take up what those of the same values did before. Along the primary keys.
INSERT INTO effects
    (run_no, position, name, key, status, attempt, session, execution, started_at, finished_at, took_ms, exit_code,
    stdout, output, lacks, settled_by, token)
SELECT run_no, position, name, key, status, attempt, session, execution, started_at, finished_at, took_ms, exit_code,
stdout, output, lacks, settled_by, token
FROM laid_by_effects JOIN (SELECT position, item, row_number() OVER (PARTITION BY item ORDER BY position) AS nth FROM tasks
      WHERE run_no = ?1 AND position >= ?3 AND position < ?4 AND item IS NOT NULL
        AND EXISTS (SELECT 1 FROM laid_by_effects WHERE run_no = ?1 AND step = ?2)) AS items
     USING (item, nth)
WHERE run_no = ?1 AND step = ?2;
