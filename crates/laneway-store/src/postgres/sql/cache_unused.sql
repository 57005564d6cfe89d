-- Some of the results that were used longest ago. Index: cache_by_use.
SELECT key, bytes, last_used_at FROM cache ORDER BY last_used_at, key LIMIT $1;
