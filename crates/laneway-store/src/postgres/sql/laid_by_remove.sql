-- What was taken up is laid by no more. Behind `effects_take_up`, with the same items.
DELETE FROM laid_by_effects AS laid
USING (SELECT tasks.run_no, list.step, position, item,
             row_number() OVER (PARTITION BY tasks.run_no, list.step, item ORDER BY position) AS nth
      FROM tasks JOIN unnest($1, $2, $3, $4) AS list (run_no, step, first, behind)
           ON tasks.run_no = list.run_no AND position >= first AND position < behind
      WHERE item IS NOT NULL
        AND EXISTS (SELECT 1 FROM laid_by_effects AS any_of WHERE any_of.run_no = list.run_no AND any_of.step = list.step)) AS items
WHERE laid.run_no = items.run_no AND laid.step = items.step AND laid.item = items.item AND laid.nth = items.nth;
