-- What every session has to offer that takes work of others.
SELECT id, offer FROM sessions WHERE offer IS NOT NULL AND NOT is_draining;
