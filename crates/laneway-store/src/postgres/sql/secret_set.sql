-- A new one, or a new value of one that is there. The moment is the database's, unless the caller has its own.
INSERT INTO secrets (name, sealed, set_at, set_by)
VALUES ($1, $2, coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint), $4)
ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, set_at = excluded.set_at, set_by = excluded.set_by;
