-- What can be claimed next of a class, first in line first. Nobody stands in line behind a run that is set aside.
-- Index: tasks_available.
SELECT rank, run_no, position, attempt, given_back, start_by FROM tasks
WHERE status = 'available' AND class = ?1 AND run_no NOT IN (SELECT run_no FROM quarantine)
ORDER BY rank, run_no, position LIMIT ?2;
