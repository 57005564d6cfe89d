-- Whoever waits for the ends of runs is told. Index: triggers_after.
INSERT INTO firings (run, seq, ended, status, workflow, key)
SELECT runs.id, runs.last_event, runs.workflow, runs.status, triggers.workflow, triggers.key
FROM runs JOIN triggers ON triggers.source = runs.workflow
WHERE runs.no = ANY ($1) AND triggers.paused_by IS NULL AND strpos(triggers.ends, ' ' || runs.status || ' ') > 0;
