-- Every session whose lease has not ended, and how many tasks it holds. Index of the count: tasks_held.
SELECT id, node, pid, registered_at, slots, offer, is_draining,
       (SELECT count(*) FROM tasks WHERE tasks.status = 'running' AND tasks.session = sessions.id)
FROM sessions
WHERE expires_at > coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) ORDER BY node, id;
