-- name: pool_event_append
-- Appends an event of a warm container under the node of its session. A session that is over
-- appends nothing.
INSERT INTO pool_events (at, node, session, container, name, version, body)
SELECT ?1, node, id, ?3, ?4, ?5, ?6 FROM sessions WHERE id = ?2;

-- name: pool_events
-- Returns pool events after a number, of node ?1 or, if NULL, of all nodes. Uses the primary key.
SELECT seq, at, node, session, name, version, body FROM pool_events
WHERE (?1 IS NULL OR node = ?1) AND seq > ?2 ORDER BY seq LIMIT ?3;

-- name: pool_keep
-- Records a pool of a live session. Repetition has no effect.
INSERT INTO pools (session, name, image, max) SELECT id, ?2, ?3, ?4 FROM sessions WHERE id = ?1 ON CONFLICT DO NOTHING;

-- name: pool_taken
-- Returns `container_taken` events that name ?1, a run. Scans the retained events along the primary
-- key; their number is bounded.
SELECT name, version, body FROM pool_events WHERE name = 'container_taken' AND instr(body, ?1) > 0 ORDER BY seq;

-- name: pool_wish
-- Replaces an operator's request for a pool of a session. A session that is over gets no request.
INSERT OR REPLACE INTO pool_wishes (session, name, warm, version) SELECT id, ?2, ?3, ?4 FROM sessions WHERE id = ?1;
