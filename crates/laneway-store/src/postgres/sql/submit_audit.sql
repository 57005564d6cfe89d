-- What the audit log says of runs that the service was asked for. Locks nothing.
INSERT INTO audit (at, by, act, what, origin)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[]);
