-- Every session whose lease has not ended, how many tasks it holds, how many lives of its node were lost, and the moment.
-- Indexes of the counts: tasks_held, losses by its primary key.
SELECT id, node, pid, registered_at, slots, offer, is_draining,
       (SELECT count(*) FROM tasks WHERE tasks.status = 'running' AND tasks.session = sessions.id),
       renewed_at, tally, asks, contentions, last_active_at,
       coalesce((SELECT lost FROM losses WHERE losses.node = sessions.node), 0), moment.now,
       expires_at - renewed_at, fires
FROM sessions,
     (SELECT coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now) AS moment
WHERE expires_at > moment.now ORDER BY node, id;
