-- Forgets some keys of runs that went long ago. Those that somebody else is about are left to them.
DELETE FROM used_keys WHERE key IN (SELECT key FROM used_keys WHERE removed_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED);
