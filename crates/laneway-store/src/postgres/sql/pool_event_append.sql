-- Transitions of warm containers, under the name of their session's node. A session that is over tells nothing any more.
-- The key `pools` is locked, so that the order of numbers is that of commits; where one fails its number stays unused.
INSERT INTO pool_events (at, node, session, container, name, version, body)
SELECT coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint), sessions.node, sessions.id,
       told.container, told.name, told.version, told.body
FROM unnest($3::text[], $4::text[], $5::bigint[], $6::text[]) WITH ORDINALITY AS told (container, name, version, body, place),
     sessions
WHERE sessions.id = $2
ORDER BY told.place;
