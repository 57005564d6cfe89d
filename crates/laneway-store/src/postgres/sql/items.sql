-- name: batch
-- Returns items that are not tasks yet. Uses the primary key.
SELECT run_no, position, no, items
FROM item_batches JOIN unnest($1, $2, $3) AS wanted (run_no, position, no) USING (run_no, position, no);

-- name: batch_add
-- Stores items of steps until they become tasks.
INSERT INTO item_batches (run_no, position, no, items) SELECT * FROM unnest($1, $2, $3, $4);

-- name: batch_remove
-- Deletes batches of items that have become tasks.
DELETE FROM item_batches USING unnest($1, $2, $3) AS gone (run_no, position, no)
WHERE item_batches.run_no = gone.run_no AND item_batches.position = gone.position AND item_batches.no = gone.no;

-- name: batches_remove
-- Deletes the batches of lists that are about to be computed again.
DELETE FROM item_batches USING unnest($1, $2) AS gone (run_no, position)
WHERE item_batches.run_no = gone.run_no AND item_batches.position = gone.position;

-- name: item
-- Returns the values of items. Uses the primary key.
SELECT position, item FROM tasks WHERE run_no = $1 AND position = ANY ($2) ORDER BY position;

-- name: items_effects_remove
-- Deletes the effects of items whose lists are gone: the same positions may get other items. The
-- caller saves the effects before (`effects_lay_by`).
DELETE FROM effects USING unnest($1, $2, $3) AS gone (run_no, first, behind)
WHERE effects.run_no = gone.run_no AND effects.position >= gone.first AND effects.position < gone.behind;

-- name: items_line
-- Returns the next items of steps with a limit on concurrent items. The column after the task shows
-- whether a session accepts it.
-- Index: tasks_in_group.
SELECT task.*, wanted.step FROM unnest($1, $2, $3, $4, $5) AS wanted (run_no, step, first, behind, number)
CROSS JOIN LATERAL (
    SELECT run_no, position, status, gate, rank, run_at, attempt, retries, lost, session, is_ahead, node, stop, reason,
       detail, exit_code, output, started_at, took_ms, finished_at, gate_key, wake_at, class, wait, growth, item, given_back, start_by, fence,
       CASE WHEN class >= 0 THEN EXISTS (SELECT 1 FROM takers WHERE takers.class = tasks.class) END
    FROM tasks WHERE tasks.run_no = wanted.run_no AND gate = 'group' AND position >= wanted.first AND position < wanted.behind
    ORDER BY rank, position LIMIT wanted.number
) AS task
ORDER BY task.run_no, task.rank, task.position;

-- name: items_live
-- Counts items of steps that are available, running or parked for a child run. The caller runs this
-- after the statement that locks the runs, never as part of it.
-- Index: tasks_live, and tasks_parked.
SELECT wanted.run_no, wanted.step, (
    SELECT count(*) FROM tasks
    WHERE tasks.run_no = wanted.run_no AND status IN ('available', 'running')
      AND position >= wanted.first AND position < wanted.behind) + (
    SELECT count(*) FROM tasks
    WHERE tasks.run_no = wanted.run_no AND status = 'parked'
      AND position >= wanted.first AND position < wanted.behind)
FROM unnest($1, $2, $3, $4) AS wanted (run_no, step, first, behind);

-- name: items_remove
-- Deletes the items of lists that are gone. No session holds any of them, because the runs had
-- ended. Uses the primary key.
DELETE FROM tasks USING unnest($1, $2, $3) AS gone (run_no, first, behind)
WHERE tasks.run_no = gone.run_no AND tasks.position >= gone.first AND tasks.position < gone.behind AND item IS NOT NULL;
