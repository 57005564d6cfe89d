-- A token by its id, one look for every request. Index: tokens_pkey.
SELECT id, name, role, hash, tail, created_by, created_at, revoked_by, revoked_at, parent, expires_at, used_at,
    coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
FROM tokens WHERE id = $1;
