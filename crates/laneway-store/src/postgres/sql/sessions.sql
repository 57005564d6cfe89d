-- Every session that is not reaped, what it holds, whether its lease has ended, its process, how
-- long ago it renewed, and the length of its lease. Index: tasks_held.
SELECT id, node, (SELECT count(*) FROM tasks WHERE status = 'running' AND session = sessions.id),
       expires_at <= moment.now, pid, greatest(moment.now - renewed_at, 0), expires_at - renewed_at
FROM sessions,
     (SELECT coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now) AS moment
ORDER BY id;
