-- Fencing token of a claim. Along the primary key.
SELECT fence FROM tasks
WHERE run_no = ?1 AND position = ?2 AND status = 'running' AND attempt + given_back = ?3 AND session = ?4;
