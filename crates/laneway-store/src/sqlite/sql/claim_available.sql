-- What could be claimed next, oldest first, for those who must look before they take. Index: tasks_available.
SELECT position FROM tasks WHERE status = 'available' AND class = ?1 ORDER BY rank, run_no, position LIMIT ?2;
