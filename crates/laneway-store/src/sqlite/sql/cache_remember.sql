-- A result, in the place of an older one of that key. What was counted of that stays.
INSERT INTO cache (key, workflow, step, parts, run, recorded_at, took_ms, exit_code, output, bytes, last_used_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?6)
ON CONFLICT (key) DO UPDATE SET parts = excluded.parts, run = excluded.run, recorded_at = excluded.recorded_at,
    took_ms = excluded.took_ms, exit_code = excluded.exit_code, output = excluded.output, bytes = excluded.bytes,
    last_used_at = excluded.last_used_at;
