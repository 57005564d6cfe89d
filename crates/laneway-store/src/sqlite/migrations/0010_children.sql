-- Runs that steps start (docs/design/children.md). Which step started a run (JSON), and, of one that is local to its owner, the run
-- that this drives; runs that are to be started, and that nobody has started yet.
ALTER TABLE runs ADD COLUMN parent TEXT;
ALTER TABLE runs ADD COLUMN root_no INTEGER;
CREATE INDEX runs_of_root ON runs (root_no) WHERE root_no IS NOT NULL;
CREATE TABLE wanted_runs (
    run_no   INTEGER NOT NULL,
    position INTEGER NOT NULL,             -- of the task that waits for it
    life     INTEGER NOT NULL,             -- the number of the event that parked it
    workflow TEXT NOT NULL,
    params   TEXT NOT NULL,
    again    TEXT,                         -- the run that it had started before, to be gone on with
    PRIMARY KEY (run_no, position)
) STRICT, WITHOUT ROWID;
-- Items that wait for a run that they have started take a place among those of their step.
CREATE INDEX tasks_parked ON tasks (run_no, position) WHERE status = 'parked';
