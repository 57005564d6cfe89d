-- Ends the live token of a name. Index: tokens_by_name.
UPDATE tokens SET revoked_by = ?2, revoked_at = ?3 WHERE name = ?1 AND revoked_at IS NULL RETURNING id;
