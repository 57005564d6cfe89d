-- A run is to be started; of one task there is one at a time.
INSERT OR REPLACE INTO wanted_runs (run_no, position, life, workflow, params, again) VALUES (?1, ?2, ?3, ?4, ?5, ?6);
