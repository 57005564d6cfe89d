-- `last`: the newest run that can be seen.
SELECT id FROM runs WHERE is_visible ORDER BY no DESC LIMIT 1;
