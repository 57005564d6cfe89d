-- Pools of every session that nobody has reaped, by node and name.
SELECT node, session, name, image, max FROM pools JOIN sessions ON sessions.id = pools.session
ORDER BY node, name, image, max, session;
