-- What the tasks of a run that succeeded left behind, in the attempts that did. Along the primary keys.
SELECT artifacts.position, artifacts.attempt, name, hash, size, is_executable
FROM tasks JOIN artifacts USING (run_no, position, attempt)
WHERE tasks.run_no = $1 AND tasks.status = 'succeeded'
ORDER BY artifacts.position, name;
