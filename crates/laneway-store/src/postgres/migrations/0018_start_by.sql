-- Until when a task that rates have let through may start. Behind that moment it takes new passages (docs/design/gates.md).
ALTER TABLE tasks ADD COLUMN start_by BIGINT;
