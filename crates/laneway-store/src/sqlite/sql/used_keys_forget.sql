-- Forgets some keys of runs that went long ago.
DELETE FROM used_keys WHERE key IN (SELECT key FROM used_keys WHERE removed_at < ?1 LIMIT ?2);
