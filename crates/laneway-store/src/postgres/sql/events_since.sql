-- A page of a run's history, behind a cursor. Along the primary key.
SELECT seq, at, name, version, body FROM events
WHERE run_no = (SELECT no FROM runs WHERE id = $1 AND is_visible) AND seq > $2
ORDER BY seq LIMIT $3;
