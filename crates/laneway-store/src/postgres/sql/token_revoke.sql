-- Ends the tokens of a name after $4 milliseconds, and with them those that came of them, however far down. A token that was rotated
-- with a grace (its revocation lies ahead) ends as well. None ends later than was said before. Behind tokens_lock: no other is made
-- of them meanwhile.
WITH RECURSIVE moment (at) AS (
    SELECT coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
), family (id) AS (
    SELECT id FROM tokens, moment WHERE name = $1 AND (revoked_at IS NULL OR revoked_at > moment.at)
    UNION
    SELECT tokens.id FROM family JOIN tokens ON tokens.parent = family.id
)
UPDATE tokens SET revoked_by = $2, revoked_at = moment.at + $4::bigint
FROM family, moment
WHERE tokens.id = family.id AND (tokens.revoked_at IS NULL OR tokens.revoked_at > moment.at + $4::bigint)
RETURNING tokens.id, tokens.name;
