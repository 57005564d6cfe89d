-- Whether the lease of a session has ended by now (?2): it may have been renewed since somebody looked.
SELECT 1 FROM sessions WHERE id = ?1 AND expires_at <= ?2;
