-- What a committed change makes possible for other runs, until it has been done: a key that became
-- free goes to the next task in line, a workflow may start its next run, a child run is to stop, the
-- end of a child is reported to its parent, a new node takes what waited for one. Each is done in a
-- transaction of its own, right behind the change, and by the sweep if that process died in between.
-- Rows are only added and removed, so that no two transactions wait for each other here.
CREATE TABLE follow_ups (
    seq      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind     TEXT NOT NULL CHECK (kind IN ('key', 'workflow', 'stop', 'ended', 'node')),
    subject  TEXT COLLATE "C" NOT NULL,   -- key, workflow, child run or session
    parent   TEXT COLLATE "C",            -- of a child that is to stop: the run and task that wait for it
    position BIGINT,
    CHECK ((kind = 'stop') = (parent IS NOT NULL)),
    CHECK ((kind = 'stop') = (position IS NOT NULL))
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX follow_ups_by_subject ON follow_ups (subject, kind);
