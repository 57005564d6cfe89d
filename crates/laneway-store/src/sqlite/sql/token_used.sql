-- Records when a token was last used, unless that was recorded less than ?3 milliseconds ago.
UPDATE tokens SET used_at = ?2 WHERE id = ?1 AND (used_at IS NULL OR used_at <= ?2 - ?3);
