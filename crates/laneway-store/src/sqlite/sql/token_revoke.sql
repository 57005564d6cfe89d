-- Ends the live token of a name, and with it those that came of it, however far down. Index: tokens_by_parent, tokens_by_name.
UPDATE tokens SET revoked_by = ?2, revoked_at = ?3
WHERE revoked_at IS NULL AND id IN (
    WITH RECURSIVE family (id) AS (
        SELECT id FROM tokens WHERE name = ?1 AND revoked_at IS NULL
        UNION
        SELECT tokens.id FROM family JOIN tokens ON tokens.parent = family.id
    )
    SELECT id FROM family
)
RETURNING id, name;
