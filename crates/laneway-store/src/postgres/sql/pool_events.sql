-- Facts of pools behind a number, of one node ($1) or of all. Along the primary key.
SELECT seq, at, node, session, name, version, body FROM pool_events
WHERE ($1::text IS NULL OR node = $1) AND seq > $2 ORDER BY seq LIMIT $3;
