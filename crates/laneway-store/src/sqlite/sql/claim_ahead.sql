-- Takes one task before there is a place for it. One that waits for `max_parallel` keeps its rank, and is marked:
-- until its holder says that it has started, it is still waiting to everybody else.
-- A session that is over gets nothing.
UPDATE tasks
SET status = 'running', gate = NULL, attempt = attempt + 1, session = ?3, is_ahead = (status = 'pending')
WHERE run_no = ?1 AND position = ?2 AND (status = 'available' OR gate = 'max_parallel')
  AND EXISTS (SELECT 1 FROM sessions WHERE id = ?3)
RETURNING attempt;
