-- Forgets some signatures that came before ?1. Index: webhook_signatures_by_age.
DELETE FROM webhook_signatures WHERE (path, signature) IN (
    SELECT path, signature FROM webhook_signatures WHERE received_at < ?1 ORDER BY received_at LIMIT ?2
);
