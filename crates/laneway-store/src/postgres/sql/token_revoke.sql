-- Ends the live token of a name. Index: tokens_by_name.
UPDATE tokens SET revoked_by = $2, revoked_at = coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
WHERE name = $1 AND revoked_at IS NULL RETURNING id;
