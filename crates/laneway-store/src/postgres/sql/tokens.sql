-- Every token, live ones first, by name. There are few, and people look at them.
SELECT id, name, role, hash, tail, created_by, created_at, revoked_by, revoked_at, parent, expires_at, used_at,
    coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
FROM tokens
ORDER BY revoked_at IS NOT NULL, name COLLATE "C", created_at, id;
