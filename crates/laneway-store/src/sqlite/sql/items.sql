-- name: batch
-- Returns items of a step that are not tasks yet.
SELECT items FROM item_batches WHERE run_no = ?1 AND position = ?2 AND no = ?3;

-- name: batch_add
-- Stores items of a step until they become tasks.
INSERT INTO item_batches (run_no, position, no, items) VALUES (?1, ?2, ?3, ?4);

-- name: batch_remove
-- Deletes a batch of items that have become tasks.
DELETE FROM item_batches WHERE run_no = ?1 AND position = ?2 AND no = ?3;

-- name: batches_remove
-- Deletes the batches of a list that is about to be computed again.
DELETE FROM item_batches WHERE run_no = ?1 AND position = ?2;

-- name: item
-- Returns the value of an item.
SELECT item FROM tasks WHERE run_no = ?1 AND position = ?2;

-- name: items_effects_remove
-- Deletes the effects of items whose list is gone: the same positions may get other items. The
-- caller saves the effects before (`effects_lay_by`).
DELETE FROM effects WHERE run_no = ?1 AND position >= ?2 AND position < ?3;

-- name: items_line
-- Returns the next items of a step with a limit on concurrent items.
-- Index: tasks_in_group.
SELECT position, status, gate, rank, run_at, attempt, retries, lost, session, is_ahead, node, stop, reason, detail,
       exit_code, output, started_at, took_ms, finished_at, gate_key, wake_at, class, wait, growth, item, given_back, start_by, fence
FROM tasks INDEXED BY tasks_in_group
WHERE run_no = ?1 AND gate = 'group' AND position >= ?2 AND position < ?3 ORDER BY rank, position LIMIT ?4;

-- name: items_live
-- Counts items of a step that are available, running or parked for a child run. INDEXED BY is
-- necessary: otherwise the planner reads every item of any status. tasks_live also contains the
-- position.
-- Index: tasks_live, and tasks_parked.
SELECT (SELECT count(*) FROM tasks INDEXED BY tasks_live
        WHERE run_no = ?1 AND status IN ('available', 'running') AND position >= ?2 AND position < ?3)
     + (SELECT count(*) FROM tasks INDEXED BY tasks_parked
        WHERE run_no = ?1 AND status = 'parked' AND position >= ?2 AND position < ?3);

-- name: items_remove
-- Deletes the items of a list that is gone. No session holds any of them, because the run had
-- ended. Uses the primary key.
DELETE FROM tasks WHERE run_no = ?1 AND position >= ?2 AND position < ?3 AND item IS NOT NULL;
