-- Invisible until its tasks are complete. Until then it belongs to who submits it, with whom it dies.
-- No RETURNING: it would make a table for the one row.
INSERT INTO runs (id, tail, workflow, version, dir, params, max_parallel, status, owner, submitted_by,
                  submitted_at, last_event, unsettled, is_visible, submitted_from, key, placement, class, bundle, hooks,
                  parent, root_no, no_cache)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'queued', ?8, ?9, ?10, 0, ?11, 0, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20);
