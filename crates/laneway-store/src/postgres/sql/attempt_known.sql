-- What claims have recorded before, if anything: a repeated finish reports it. Along the primary key.
SELECT run_no, position, attempt, session, outcome
FROM attempts JOIN unnest($1, $2, $3, $4) AS said (run_no, position, attempt, session)
     USING (run_no, position, attempt, session);
