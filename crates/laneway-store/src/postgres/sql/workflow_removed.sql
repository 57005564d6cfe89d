-- What ran under a name before starts by it no more.
INSERT INTO removed_workflows (name, removed_at)
VALUES ($1, coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint))
ON CONFLICT (name) DO UPDATE SET removed_at = excluded.removed_at;
