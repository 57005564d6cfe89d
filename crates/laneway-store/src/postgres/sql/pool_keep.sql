-- A session that lives keeps pools from here on. Once is enough.
INSERT INTO pools (session, name, image, max)
SELECT sessions.id, kept.* FROM sessions, unnest($2::text[], $3::text[], $4::bigint[]) AS kept WHERE sessions.id = $1
ON CONFLICT DO NOTHING;
