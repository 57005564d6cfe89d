-- Remembers the key of a run that goes.
INSERT INTO used_keys (key, run, removed_at)
VALUES ($1, $2, coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint))
ON CONFLICT (key) DO UPDATE SET run = excluded.run, removed_at = excluded.removed_at;
