-- Ends of runs that have yet to fire, oldest first, with the version of who waits for them, if that is still there
-- and not paused. Hooks of a run that is local to its owner are its owner's, as long as that lives.
SELECT firings.run, firings.seq, firings.ended, firings.status, firings.workflow, firings.key, triggers.version
FROM firings LEFT JOIN triggers
     ON triggers.workflow = firings.workflow AND triggers.key = firings.key AND triggers.paused_by IS NULL
WHERE firings.key <> 'hooks here'
   OR NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = firings.run AND runs.owner IS NOT NULL)
ORDER BY firings.run, firings.seq, firings.workflow, firings.key LIMIT ?1;
