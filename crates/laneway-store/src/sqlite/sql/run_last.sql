-- `last`: the newest run that can be seen.
SELECT id FROM runs WHERE is_visible = 1 ORDER BY no DESC LIMIT 1;
