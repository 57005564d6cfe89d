-- name: pool_containers
-- Returns the latest event of each warm container that exists, of every live session. A session's
-- ports, and each image that it pulls, have their own names in the same column. Their latest events
-- are therefore included.
-- Index: pool_events_of_container.
SELECT seq, at, pool_events.node, pool_events.session, name, version, body
FROM pool_events JOIN sessions ON sessions.id = pool_events.session
WHERE name <> 'container_terminated' AND container <> ''
  AND NOT EXISTS (SELECT 1 FROM pool_events later
                  WHERE later.container = pool_events.container AND later.seq > pool_events.seq)
ORDER BY pool_events.node, container;

-- name: pool_events_forget
-- Deletes events that are older than the newest $1. Keeps the latest event of each container, of a
-- session's ports and of each image that it pulls. The caller holds the lock of the key `pools`.
-- Uses the primary key.
DELETE FROM pool_events
WHERE seq <= (SELECT max(seq) FROM pool_events) - $1
  AND (name = 'container_terminated' OR container = '' OR session NOT IN (SELECT id FROM sessions)
       OR EXISTS (SELECT 1 FROM pool_events later
                  WHERE later.container = pool_events.container AND later.seq > pool_events.seq));

-- name: pool_wishes
-- Returns the operator's pool requests for a session, oldest first.
SELECT seq, name, warm, version FROM pool_wishes WHERE session = $1 ORDER BY seq;

-- name: pools
-- Lists the pools of every session that the reaper has not removed.
SELECT node, session, name, image, max FROM pools JOIN sessions ON sessions.id = pools.session
ORDER BY node, name, image, max, session;
