-- When the passages of a task's rates expire (docs/design/gates.md).
ALTER TABLE tasks ADD COLUMN start_by BIGINT;
-- Fencing token of a task's lock (docs/guides/fencing.md). `keys.tat` has the last token of a lock.
ALTER TABLE tasks ADD COLUMN fence BIGINT;
-- Holders from before get a token that is smaller than all later ones.
UPDATE tasks SET fence = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint WHERE status IN ('available', 'running');
