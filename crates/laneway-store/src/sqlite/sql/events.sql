-- name: event_append
-- Appends an event. The caller numbers it from the row of the run. The primary key rejects a number
-- that is already used.
INSERT INTO events (run_no, seq, at, name, version, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6);

-- name: events_since
-- Returns a page of a run's history after a cursor.
SELECT seq, at, name, version, body FROM events WHERE run_no = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3;
