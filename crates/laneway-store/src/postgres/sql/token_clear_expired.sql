-- Ends a token that has expired, so that its name is free for a new one. Index: tokens_by_name.
UPDATE tokens SET revoked_by = 'expiry', revoked_at = expires_at
WHERE name = $1 AND revoked_at IS NULL
    AND expires_at <= coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
