-- An end has fired. Hooks of an end before it, that nobody saw to, are not made up for any more.
DELETE FROM firings
WHERE run = ?1 AND workflow = ?3 AND key = ?4 AND (seq = ?2 OR seq < ?2 AND key IN ('hooks', 'hooks here'));
