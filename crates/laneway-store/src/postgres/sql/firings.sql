-- Ends of runs that have yet to fire, oldest first, with the version of who waits for them, if that is still there
-- and not paused.
SELECT firings.run, firings.seq, firings.ended, firings.status, firings.workflow, firings.key, triggers.version
FROM firings LEFT JOIN triggers
     ON triggers.workflow = firings.workflow AND triggers.key = firings.key AND triggers.paused_by IS NULL
ORDER BY firings.run, firings.seq, firings.workflow, firings.key LIMIT $1;
