-- A result goes, unless it was used since. Along the primary key.
DELETE FROM cache WHERE key = ?1 AND last_used_at <= ?2;
