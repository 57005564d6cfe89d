-- name: pool_event_append
-- Appends events of warm containers under the node of their session. A session that is over appends
-- nothing. The caller holds the lock of the key `pools`, so that numbers follow the order of
-- commits. A failed transaction leaves its number unused.
INSERT INTO pool_events (at, node, session, container, name, version, body)
SELECT coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint), sessions.node, sessions.id,
       told.container, told.name, told.version, told.body
FROM unnest($3::text[], $4::text[], $5::bigint[], $6::text[]) WITH ORDINALITY AS told (container, name, version, body, place),
     sessions
WHERE sessions.id = $2
ORDER BY told.place;

-- name: pool_events
-- Returns pool events after a number, of node $1 or, if NULL, of all nodes. Uses the primary key.
SELECT seq, at, node, session, name, version, body FROM pool_events
WHERE ($1::text IS NULL OR node = $1) AND seq > $2 ORDER BY seq LIMIT $3;

-- name: pool_keep
-- Records the pools of a live session. Repetition has no effect.
INSERT INTO pools (session, name, image, max)
SELECT sessions.id, kept.* FROM sessions, unnest($2::text[], $3::text[], $4::bigint[]) AS kept WHERE sessions.id = $1
ON CONFLICT DO NOTHING;

-- name: pool_taken
-- Returns `container_taken` events that name $1, a run. Scans the retained events along the primary
-- key; their number is bounded.
SELECT name, version, body FROM pool_events WHERE name = 'container_taken' AND strpos(body, $1) > 0 ORDER BY seq;

-- name: pool_wish
-- Replaces an operator's request for a pool of some sessions, under a new number. The number orders
-- concurrent requests. Sessions that are over get no request. Rows are written in the order of
-- session ids, so that concurrent requests do not deadlock.
INSERT INTO pool_wishes (session, name, warm, version)
SELECT id, $2, $3, $4 FROM sessions WHERE id = ANY ($1) ORDER BY id
ON CONFLICT (session, name) DO UPDATE
SET seq = nextval('pool_wish_numbers'), warm = excluded.warm, version = excluded.version;
