-- Every session that nobody has reaped, when its lease ends, if it lives by one, how many tasks it holds, and how many lives of its node were lost.
-- Indexes of the counts: tasks_held, losses by its primary key.
SELECT id, node, pid, registered_at, slots, offer, is_draining,
       (SELECT count(*) FROM tasks WHERE tasks.status = 'running' AND tasks.session = sessions.id),
       renewed_at, tally, asks, contentions, last_active_at,
       coalesce((SELECT lost FROM losses WHERE losses.node = sessions.node), 0), expires_at, fires
FROM sessions ORDER BY node, id;
