-- Some entries of the audit log that are older than a moment, from its beginning on. The newest stays, so that its number is not given
-- out again. Along the primary key, over ?2 entries at the most.
DELETE FROM audit
WHERE seq <= (SELECT max(seq) FROM (SELECT seq FROM audit ORDER BY seq LIMIT ?2))
  AND seq < (SELECT max(seq) FROM audit) AND at < ?1;
