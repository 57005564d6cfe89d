-- The newest fact of each warm container that is there: of a session that lives, and not terminated.
-- The ports of a session, and each image that it pulls, have a name of their own in the same column, so
-- their newest facts are here too.
-- Index: pool_events_of_container.
SELECT seq, at, pool_events.node, pool_events.session, name, version, body
FROM pool_events JOIN sessions ON sessions.id = pool_events.session
WHERE name <> 'container_terminated' AND container <> ''
  AND NOT EXISTS (SELECT 1 FROM pool_events later
                  WHERE later.container = pool_events.container AND later.seq > pool_events.seq)
ORDER BY pool_events.node, container;
