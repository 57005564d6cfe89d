-- A token by its id, along the primary key: one look for every request.
SELECT id, name, role, hash, tail, created_by, created_at, revoked_by, revoked_at, parent, expires_at, used_at FROM tokens WHERE id = ?1;
