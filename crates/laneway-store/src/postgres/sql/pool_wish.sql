-- What is wanted of a pool of some sessions, in place of what was wanted of it before, with a new number: two who want
-- something at once have one order. Sessions that are over are told nothing. In order of their ids, so that two who want
-- something of the same ones do not wait for each other.
INSERT INTO pool_wishes (session, name, warm, version)
SELECT id, $2, $3, $4 FROM sessions WHERE id = ANY ($1) ORDER BY id
ON CONFLICT (session, name) DO UPDATE
SET seq = nextval('pool_wish_numbers'), warm = excluded.warm, version = excluded.version;
