-- Whether a claim is still held, for whoever writes beside the store.
SELECT 1 FROM tasks JOIN runs ON runs.no = tasks.run_no
WHERE runs.id = ?1 AND tasks.position = ?2 AND tasks.status = 'running' AND tasks.attempt + tasks.given_back = ?3 AND tasks.session = ?4;
