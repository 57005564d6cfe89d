-- Whether anything that a session takes, and has room for, is still there to be claimed. Where a claim before it got less than it
-- wanted, others have that in hand. $2 to $6 say where each line begins, as in claim_shared.sql. Index: tasks_available, takers_of_session and tasks_held; walked along, as in claim_shared.sql.
SELECT EXISTS (
    SELECT 1 FROM takers
    LEFT JOIN unnest($3, $4, $5, $6) AS line_start (class, after_rank, after_run, after_position) USING (class)
    CROSS JOIN LATERAL (
        SELECT 1 FROM tasks
        WHERE status = 'available' AND tasks.class = takers.class
          AND (rank, run_no, position) > (coalesce(after_rank, $2), coalesce(after_run, -9223372036854775808),
                                          coalesce(after_position, -9223372036854775808))
          AND run_no + 0 <> ALL (ARRAY(SELECT quarantine.run_no FROM quarantine))
        ORDER BY rank, run_no, position LIMIT 1
    ) AS next
    WHERE takers.session = $1
      AND (places IS NULL OR places > (
          SELECT count(*) FROM tasks JOIN takers AS same ON same.class = tasks.class AND same.session = $1
          WHERE tasks.status = 'running' AND tasks.session = $1 AND same.pool = takers.pool))
);
