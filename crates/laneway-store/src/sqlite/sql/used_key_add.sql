-- Remembers the key of a run that goes.
INSERT INTO used_keys (key, run, removed_at) VALUES (?1, ?2, ?3)
ON CONFLICT (key) DO UPDATE SET run = excluded.run, removed_at = excluded.removed_at;
