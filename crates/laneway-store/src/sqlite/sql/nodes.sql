-- Every session that nobody has reaped, when its lease ends, if it lives by one, how many tasks it holds, and how many lives of its node were lost.
-- Indexes of the counts: tasks_held, node_events_of_node.
SELECT id, node, pid, registered_at, slots, offer, is_draining,
       (SELECT count(*) FROM tasks WHERE tasks.status = 'running' AND tasks.session = sessions.id),
       renewed_at, tally, asks, contentions, last_active_at,
       (SELECT count(*) FROM node_events WHERE node_events.node = sessions.node AND name = 'node_lost'), expires_at
FROM sessions ORDER BY node, id;
