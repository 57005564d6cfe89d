-- Who let a run go on last, if anybody did. Through its history, from its end: for a release, which has read all of it before.
SELECT json_extract(body, '$.by') FROM events
WHERE run_no = ?1 AND name = 'run_reopened'
ORDER BY seq DESC LIMIT 1;
