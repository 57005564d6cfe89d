-- Every token, live ones first, by name. There are few, and people look at them.
SELECT id, name, role, hash, tail, created_by, created_at, revoked_by, revoked_at, parent, expires_at, used_at FROM tokens
ORDER BY revoked_at IS NOT NULL, name, created_at, id;
