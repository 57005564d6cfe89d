-- Every session that nobody has reaped, and how many tasks it holds. Index of the count: tasks_held.
SELECT id, node, pid, registered_at, slots, offer, is_draining,
       (SELECT count(*) FROM tasks WHERE tasks.status = 'running' AND tasks.session = sessions.id)
FROM sessions ORDER BY node, id;
