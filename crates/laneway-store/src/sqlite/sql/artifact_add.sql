-- A file that an attempt left behind, if that is still held by whom it was: task, claim generation, session and `running`. Twice is once.
INSERT INTO artifacts (run_no, position, attempt, name, hash, size, is_executable)
SELECT run_no, position, attempt, ?5, ?6, ?7, ?8 FROM tasks
WHERE run_no = ?1 AND position = ?2 AND status = 'running' AND attempt + given_back = ?3 AND session = ?4
ON CONFLICT (run_no, position, attempt, name) DO UPDATE SET hash = excluded.hash, size = excluded.size,
                                                            is_executable = excluded.is_executable;
