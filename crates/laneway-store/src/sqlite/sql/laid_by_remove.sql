-- What was taken up is laid by no more. Behind `effects_take_up`, with the same items.
DELETE FROM laid_by_effects WHERE rowid IN (
SELECT laid_by_effects.rowid
FROM laid_by_effects JOIN (SELECT position, item, row_number() OVER (PARTITION BY item ORDER BY position) AS nth FROM tasks
      WHERE run_no = ?1 AND position >= ?3 AND position < ?4 AND item IS NOT NULL
        AND EXISTS (SELECT 1 FROM laid_by_effects WHERE run_no = ?1 AND step = ?2)) AS items
     USING (item, nth)
WHERE run_no = ?1 AND step = ?2);
