-- Runs are to be started; of one task there is one at a time.
INSERT INTO wanted_runs (run_no, position, life, workflow, params, again)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6)
ON CONFLICT (run_no, position) DO UPDATE
SET life = excluded.life, workflow = excluded.workflow, params = excluded.params, again = excluded.again;
