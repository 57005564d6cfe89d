-- name: event_append
-- Appends events. The caller numbers them under the locks of the runs. The primary key rejects a
-- number that is already used.
INSERT INTO events (run_no, seq, at, name, version, body) SELECT * FROM unnest($1, $2, $3, $4, $5, $6);

-- name: events_since
-- Returns a page of a run's history after a cursor. Uses the primary key.
SELECT seq, at, name, version, body FROM events
WHERE run_no = (SELECT no FROM runs WHERE id = $1 AND is_visible) AND seq > $2
ORDER BY seq LIMIT $3;
