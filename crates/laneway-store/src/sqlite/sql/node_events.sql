-- Facts of nodes behind a number, of one (?1) or of all. Along the primary key, or node_events_of_node.
SELECT seq, at, node, session, name, version, body FROM node_events
WHERE (?1 IS NULL OR node = ?1) AND seq > ?2 ORDER BY seq LIMIT ?3;
