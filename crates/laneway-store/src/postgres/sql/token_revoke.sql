-- Ends the live token of a name, and with it those that came of it, however far down. Behind tokens_lock: nobody makes another one
-- of them meanwhile. Index: tokens_by_parent, tokens_by_name.
WITH RECURSIVE family (id) AS (
    SELECT id FROM tokens WHERE name = $1 AND revoked_at IS NULL
    UNION
    SELECT tokens.id FROM family JOIN tokens ON tokens.parent = family.id
)
UPDATE tokens SET revoked_by = $2, revoked_at = coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
FROM family WHERE tokens.id = family.id AND tokens.revoked_at IS NULL RETURNING tokens.id, tokens.name;
