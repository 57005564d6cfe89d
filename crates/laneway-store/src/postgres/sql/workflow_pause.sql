-- Nothing of a workflow starts from here on.
INSERT INTO paused_workflows (name, by, since)
VALUES ($1, $2, coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)) ON CONFLICT DO NOTHING
RETURNING name;
