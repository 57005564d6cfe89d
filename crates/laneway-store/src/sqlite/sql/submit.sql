-- name: discard_needs_sets
-- Deletes needs sets of runs whose submission did not complete.
-- Index: runs_owned.
DELETE FROM needs_sets WHERE run_no IN (SELECT no FROM runs WHERE owner = ?1 AND is_visible = 0);

-- name: discard_run
-- Deletes a run that was never visible.
DELETE FROM runs WHERE no = ?1 AND is_visible = 0;

-- name: discard_run_needs_sets
-- Deletes the needs sets of a run that was never visible.
DELETE FROM needs_sets WHERE run_no = ?1 AND EXISTS (SELECT 1 FROM runs WHERE no = ?1 AND is_visible = 0);

-- name: discard_run_tasks
-- Deletes the tasks of a run that was never visible.
DELETE FROM tasks WHERE run_no = ?1 AND EXISTS (SELECT 1 FROM runs WHERE no = ?1 AND is_visible = 0);

-- name: discard_runs
-- Deletes runs whose submission did not complete. They were never visible.
-- Index: runs_owned.
DELETE FROM runs WHERE owner = ?1 AND is_visible = 0;

-- name: discard_tasks
-- Deletes tasks of runs whose submission did not complete.
-- Index: runs_owned.
DELETE FROM tasks WHERE run_no IN (SELECT no FROM runs WHERE owner = ?1 AND is_visible = 0);

-- name: run_by_key
-- Returns the run that was submitted with a key, and the fields that a repeated submission must
-- match. `is_visible` shows whether that submission is complete.
-- Index: runs_by_key.
SELECT id, is_visible, workflow, version, params FROM runs WHERE key = ?1;

-- name: submit_end
-- Makes a run visible, after all its tasks were inserted. The submission counts from this moment.
UPDATE runs SET is_visible = 1, submitted_at = ?2 WHERE id = ?1;

-- name: submit_run
-- Inserts an invisible run; `submit_end` shows it when its tasks are complete. Until then the
-- submitting session owns it, and the run is discarded with that session. No RETURNING: SQLite
-- would build a temporary table for the single row.
INSERT INTO runs (id, tail, workflow, version, dir, params, max_parallel, status, owner, submitted_by,
                  submitted_at, last_event, unsettled, is_visible, submitted_from, key, placement, class, bundle, hooks,
                  parent, root_no, no_cache)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'queued', ?8, ?9, ?10, 0, ?11, 0, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20);

-- name: submit_task
INSERT INTO tasks (run_no, position, class, status, gate, rank) VALUES (?1, ?2, ?3, 'pending', ?4, ?5);

-- name: submit_workflow
-- Stores each document once.
INSERT INTO workflows (version, name, document, created_at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING;

-- name: task_add
-- Inserts a task of a running step: an item.
INSERT INTO tasks (run_no, position, class, status, gate, gate_key, wake_at, rank, attempt, reason, detail, finished_at, item,
                   started_at, took_ms, wait, due_at, given_back, start_by, fence)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20);
