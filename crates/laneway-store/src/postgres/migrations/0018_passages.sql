-- Until when a task that rates have let through may start. Behind that moment it takes new passages (docs/design/gates.md).
ALTER TABLE tasks ADD COLUMN start_by BIGINT;
-- The number with which it got its lock, larger than those of all that had that lock before. The last one of a lock is
-- the `tat` of its key (docs/guides/fencing.md).
ALTER TABLE tasks ADD COLUMN fence BIGINT;
