-- The items of some steps in their order, how each stands, and what it has put out. Along the primary key.
SELECT tasks.run_no, wanted.step, position, status, output
FROM tasks JOIN unnest($1, $2, $3, $4) AS wanted (run_no, step, first, behind)
  ON tasks.run_no = wanted.run_no AND position >= wanted.first AND position < wanted.behind
WHERE item IS NOT NULL ORDER BY tasks.run_no, position;
