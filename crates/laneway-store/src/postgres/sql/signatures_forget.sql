-- Forgets some signatures that came more than $2 milliseconds ago. Those that another node forgets just now are left to it.
-- Index: webhook_signatures_by_age.
DELETE FROM webhook_signatures WHERE (path, signature) IN (
    SELECT path, signature FROM webhook_signatures
    WHERE received_at < coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) - $2::bigint
    ORDER BY received_at LIMIT $3 FOR UPDATE SKIP LOCKED
);
