-- The next of a name, behind the lock of the name's key. The moment is the database's, unless the caller has its own.
INSERT INTO definitions (name, no, version, dir, bundle, applied_at, applied_by)
VALUES ($1, $2, $3, $4, $5, coalesce($6::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint), $7);
