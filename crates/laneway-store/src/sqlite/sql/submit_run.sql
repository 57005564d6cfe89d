-- Invisible until its tasks are complete.
INSERT INTO runs (id, tail, workflow, version, dir, params, max_parallel, status, owner, submitted_by,
                  submitted_at, last_event, unsettled, is_visible, placement)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'queued', ?8, ?9, ?10, 0, ?11, 0, CASE WHEN ?8 IS NULL THEN 'spread' ELSE 'local' END)
RETURNING no;
