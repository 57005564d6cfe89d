-- Whoever waits for the end of a run is told, and so is whoever has to see to its hooks. Index: triggers_after.
INSERT INTO firings (run, seq, ended, status, workflow, key)
SELECT runs.id, runs.last_event, runs.workflow, runs.status, triggers.workflow, triggers.key
FROM runs JOIN triggers ON triggers.source = runs.workflow
WHERE runs.no = ?1 AND triggers.paused_by IS NULL AND instr(triggers.ends, ' ' || runs.status || ' ') > 0
  -- The hooks of an end are two runs with one name. Only the run of their steps fires triggers (`hook::Which::Callbacks`).
  AND substr(runs.version, -10) <> '.callbacks'
UNION ALL
SELECT id, last_event, workflow, status, workflow, CASE placement WHEN 'local' THEN 'hooks here' ELSE 'hooks' END
FROM runs WHERE no = ?1 AND instr(hooks, ' ' || status || ' ') > 0
  -- Hooks share the clock of clean-up: none start once that is over, or in a run that never started.
  AND (deadline_at IS NOT NULL OR closing IS NULL OR closing NOT IN ('canceled', 'run_timeout'));
