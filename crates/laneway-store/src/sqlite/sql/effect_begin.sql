-- An effect is about to begin: recorded under the fence, task, claim generation, session and `running`, by a session that is alive. In the
-- place of one that failed, or of which nobody knows and that may run again; never of one that has happened.
INSERT INTO effects (run_no, position, name, key, status, attempt, session, execution, started_at, token)
SELECT run_no, position, ?5, ?6, 'started', attempt, session, ?7, ?8, ?9 FROM tasks
WHERE run_no = ?1 AND position = ?2 AND status = 'running' AND attempt + given_back = ?3 AND session = ?4
  AND EXISTS (SELECT 1 FROM sessions WHERE id = ?4 AND (expires_at IS NULL OR expires_at > ?8))
ON CONFLICT (run_no, position, name, key) DO UPDATE
SET status = 'started', attempt = excluded.attempt, session = excluded.session, execution = excluded.execution,
    started_at = excluded.started_at, token = excluded.token, finished_at = NULL, took_ms = NULL, exit_code = NULL, settled_by = NULL
WHERE effects.status <> 'done';
