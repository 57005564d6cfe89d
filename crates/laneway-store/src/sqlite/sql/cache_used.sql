-- A result was taken so many times. One that is gone meanwhile is none.
UPDATE cache SET hits = hits + ?2, last_used_at = max(last_used_at, ?3) WHERE key = ?1;
