-- What claims have recorded before, if anything: a repeated finish reports it. Along the primary key; the generation tells
-- it from a claim of the same session that was given back, and whose attempt has this number now.
SELECT run_no, position, attempt, session, outcome, generation
FROM attempts JOIN unnest($1, $2, $3, $4, $5) AS said (run_no, position, attempt, session, generation)
     USING (run_no, position, attempt, session)
WHERE attempts.attempt + attempts.given_back = said.generation;
