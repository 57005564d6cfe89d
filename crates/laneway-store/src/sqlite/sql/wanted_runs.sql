-- Runs that are to be started, behind a place (?4, ?5): those of shared runs, which any node starts, unless ?3 leaves them out, and
-- those of a session (?1). Not of a run that is set aside. Along the primary key.
SELECT runs.id, position, life, wanted_runs.workflow, wanted_runs.params, again, placement = 'local', run_no
FROM wanted_runs JOIN runs ON runs.no = run_no
WHERE (run_no, position) > (?4, ?5)
  AND (owner = ?1 AND placement = 'local' OR placement <> 'local' AND NOT ?3)
  AND run_no NOT IN (SELECT run_no FROM quarantine)
ORDER BY run_no, position LIMIT ?2;
