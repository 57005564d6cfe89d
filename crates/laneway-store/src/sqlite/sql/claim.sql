-- Takes one task for a session and mints its attempt. Under the one writer nobody can have taken it since it was looked
-- at, and this asks again. One that waits for `max_parallel` keeps its rank, and is marked: until its holder says that
-- it has started, it is still waiting to everybody else. A session that is over, or whose lease has ended by now (?5), gets
-- nothing, and a run that is set aside gives nothing.
-- No RETURNING: it would make a table for the one row, which costs more than the rest.
UPDATE tasks
SET status = 'running', gate = NULL, attempt = attempt + 1, session = ?3, is_ahead = (status = 'pending')
WHERE run_no = ?1 AND position = ?2 AND attempt = ?4 AND (status = 'available' OR gate = 'max_parallel')
  AND EXISTS (SELECT 1 FROM sessions WHERE id = ?3 AND (expires_at IS NULL OR expires_at > ?5))
  AND NOT EXISTS (SELECT 1 FROM quarantine WHERE run_no = ?1);
