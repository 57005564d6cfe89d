-- What the items of steps did to the world goes with their lists: what will stand in their places may be something else. It is laid by before.
DELETE FROM effects USING unnest($1, $2, $3) AS gone (run_no, first, behind)
WHERE effects.run_no = gone.run_no AND effects.position >= gone.first AND effects.position < gone.behind;
