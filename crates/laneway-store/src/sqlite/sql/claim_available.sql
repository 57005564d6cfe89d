-- What can be claimed next of a class, first in line first. Index: tasks_available.
SELECT rank, run_no, position, attempt FROM tasks
WHERE status = 'available' AND class = ?1 ORDER BY rank, run_no, position LIMIT ?2;
