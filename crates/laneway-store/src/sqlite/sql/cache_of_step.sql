-- The newest results of a step. Index: cache_of_step.
SELECT run, recorded_at, parts FROM cache WHERE workflow = ?1 AND step = ?2 ORDER BY recorded_at DESC LIMIT ?3;
