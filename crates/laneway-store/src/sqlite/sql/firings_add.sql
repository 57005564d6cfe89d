-- Whoever waits for the end of a run is told. Index: triggers_after.
INSERT INTO firings (run, seq, ended, status, workflow, key)
SELECT runs.id, runs.last_event, runs.workflow, runs.status, triggers.workflow, triggers.key
FROM runs JOIN triggers ON triggers.source = runs.workflow
WHERE runs.no = ?1 AND triggers.paused_by IS NULL AND instr(triggers.ends, ' ' || runs.status || ' ') > 0;
