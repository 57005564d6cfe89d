-- Runs to look at, newest first, along the primary key.
SELECT no, id FROM runs WHERE is_visible ORDER BY no DESC LIMIT $1;
