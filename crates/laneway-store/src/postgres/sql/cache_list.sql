-- Results behind one of them, those that were used last first; of a workflow and of a step, where these are given.
SELECT key, workflow, step, run, recorded_at, took_ms, bytes, hits, last_used_at FROM cache
WHERE ($1::text IS NULL OR workflow = $1) AND ($2::text IS NULL OR step = $2)
  AND (last_used_at < $3 OR (last_used_at = $3 AND key > $4))
ORDER BY last_used_at DESC, key LIMIT $5;
