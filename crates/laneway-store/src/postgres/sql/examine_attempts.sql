-- The words of the attempts of a run.
SELECT position, attempt, node, outcome, reason, detail FROM attempts WHERE run_no = $1 ORDER BY position, attempt;
