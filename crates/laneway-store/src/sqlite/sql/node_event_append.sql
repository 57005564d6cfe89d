-- A node's fact, numbered in the order of commits: there is one writer.
INSERT INTO node_events (at, node, session, name, version, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6);
