-- An entry of the audit log. Locks nothing: where one fails its number stays unused.
INSERT INTO audit (at, by, act, what, origin)
VALUES (coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint), $2, $3, $4, $5)
RETURNING seq;
