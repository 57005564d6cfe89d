-- A new token. Makes none where a live one has its name.
INSERT INTO tokens (id, name, role, hash, tail, created_by, created_at, parent, expires_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT DO NOTHING;
