-- Some entries of the audit log that are older than a moment, from its beginning on, over $2 entries at the most. The newest stays. Those
-- that somebody else is about are left to them. Index: audit_pkey.
DELETE FROM audit WHERE seq IN (
    SELECT seq FROM audit
    WHERE seq <= (SELECT max(seq) FROM (SELECT seq FROM audit ORDER BY seq LIMIT $2) AS front)
      AND seq < (SELECT max(seq) FROM audit) AND at < $1
    ORDER BY seq FOR UPDATE SKIP LOCKED)
RETURNING seq;
