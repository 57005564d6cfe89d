-- A result, in the place of an older one of that key. What was counted of that stays. The moment is the database's, unless the
-- caller has its own. The row is locked until the commit, so that what belongs to it is of one result.
INSERT INTO cache (key, workflow, step, parts, run, recorded_at, took_ms, exit_code, output, bytes, last_used_at)
SELECT $1, $2, $3, $4, $5, now, $7, $8, $9, $10, now
FROM (SELECT coalesce($6::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now) AS clock
ON CONFLICT (key) DO UPDATE SET parts = excluded.parts, run = excluded.run, recorded_at = excluded.recorded_at,
    took_ms = excluded.took_ms, exit_code = excluded.exit_code, output = excluded.output, bytes = excluded.bytes,
    last_used_at = excluded.last_used_at;
