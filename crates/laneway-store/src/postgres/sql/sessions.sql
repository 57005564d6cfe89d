-- Every session that nobody has reaped, what it holds, and whether its lease has ended. Index: tasks_held.
SELECT id, node, (SELECT count(*) FROM tasks WHERE status = 'running' AND session = sessions.id),
       expires_at <= coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
FROM sessions ORDER BY id;
