-- When the passages of a task's rates expire (docs/design/gates.md).
ALTER TABLE tasks ADD COLUMN start_by INTEGER;
-- Fencing token of a task's lock (docs/guides/fencing.md). `keys.tat` has the last token of a lock.
ALTER TABLE tasks ADD COLUMN fence INTEGER;
-- Holders from before get a token that is smaller than all later ones.
UPDATE tasks SET fence = CAST(strftime('%s', 'now') AS INTEGER) * 1000000 WHERE status IN ('available', 'running');
