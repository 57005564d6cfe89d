-- Steps that grow (docs/design/growth.md). A step with `for_each` knows how many items it has (JSON), each of its items its value
-- (JSON); items that are yet to be tasks are kept in batches. Of those that wait for a place among the others only the index knows
-- the next.
ALTER TABLE tasks ADD COLUMN growth TEXT;
ALTER TABLE tasks ADD COLUMN item TEXT;
CREATE INDEX tasks_in_group ON tasks (run_no, rank, position) WHERE gate = 'group';
CREATE TABLE item_batches (
    run_no   INTEGER NOT NULL,
    position INTEGER NOT NULL,             -- of the step
    no       INTEGER NOT NULL,
    items    TEXT NOT NULL,
    PRIMARY KEY (run_no, position, no)
) STRICT, WITHOUT ROWID;
