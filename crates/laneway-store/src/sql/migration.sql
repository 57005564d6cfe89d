-- name: migration_least
-- Sets the lowest schema version that a program must know to register a session.
INSERT INTO meta (key, value) VALUES ('least_schema', $1) ON CONFLICT (key) DO UPDATE SET value = excluded.value;
