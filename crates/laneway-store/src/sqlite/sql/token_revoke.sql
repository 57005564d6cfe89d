-- Ends the tokens of a name at ?4, and with them those that came of them, however far down. A token that was rotated with a grace
-- (its revocation lies ahead of now, ?3) ends as well. None ends later than was said before.
UPDATE tokens SET revoked_by = ?2, revoked_at = ?4
WHERE (revoked_at IS NULL OR revoked_at > ?4) AND id IN (
    WITH RECURSIVE family (id) AS (
        SELECT id FROM tokens WHERE name = ?1 AND (revoked_at IS NULL OR revoked_at > ?3)
        UNION
        SELECT tokens.id FROM family JOIN tokens ON tokens.parent = family.id
    )
    SELECT id FROM family
)
RETURNING id, name;
