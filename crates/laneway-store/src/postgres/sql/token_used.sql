-- Records when a token was last used, unless that was recorded less than $3 milliseconds ago. Index: tokens_pkey.
UPDATE tokens SET used_at = coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
WHERE id = $1 AND (used_at IS NULL
    OR used_at <= coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) - $3::bigint);
