-- A transition of a warm container, under the name of its session's node. A session that is over tells nothing any more.
INSERT INTO pool_events (at, node, session, container, name, version, body)
SELECT ?1, node, id, ?3, ?4, ?5, ?6 FROM sessions WHERE id = ?2;
