-- A new token. Makes none where a live one has its name, which the unique index on live names sees to.
INSERT INTO tokens (id, name, role, hash, tail, created_by, created_at, parent, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, coalesce($7::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint), $8,
    least($9::bigint, coalesce($7::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) + $10::bigint))
ON CONFLICT DO NOTHING RETURNING created_at;
