-- The end of a run whose hooks have yet to run, if there is one.
SELECT run, seq, ended, status, workflow, key, NULL FROM firings WHERE run = ?1 AND key IN ('hooks', 'hooks here')
ORDER BY seq DESC LIMIT 1;
