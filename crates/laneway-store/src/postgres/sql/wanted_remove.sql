-- They are started, or are not wanted any more.
DELETE FROM wanted_runs USING unnest($1, $2) AS gone (run_no, position)
WHERE wanted_runs.run_no = gone.run_no AND wanted_runs.position = gone.position;
