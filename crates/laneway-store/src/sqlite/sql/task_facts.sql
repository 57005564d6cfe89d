-- What verbs ask of a task before they decide.
SELECT status, gate, run_at, attempt, retries, lost, started_at, session, stop, is_ahead
FROM tasks WHERE run_no = ?1 AND position = ?2;
