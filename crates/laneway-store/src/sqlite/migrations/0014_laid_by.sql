-- What services know an effect by: made when it is first begun, and with it wherever it goes.
ALTER TABLE effects ADD COLUMN token TEXT;

-- What items did to the world whose list is being made anew: an item of the same value takes it up again. Of equal values in one list the
-- first is the first, and so on (`nth`). No WITHOUT ROWID: rows can be large.
CREATE TABLE laid_by_effects (
    run_no      INTEGER NOT NULL,
    step        INTEGER NOT NULL,          -- whose items they were
    item        TEXT NOT NULL,             -- the value
    nth         INTEGER NOT NULL,
    name        TEXT NOT NULL,
    key         TEXT NOT NULL,
    status      TEXT NOT NULL,
    attempt     INTEGER NOT NULL,
    session     TEXT NOT NULL,
    execution   TEXT NOT NULL,
    started_at  INTEGER NOT NULL,
    finished_at INTEGER,
    took_ms     INTEGER,
    exit_code   INTEGER,
    stdout      BLOB,
    output      TEXT,
    lacks       TEXT,
    settled_by  TEXT,
    token       TEXT
) STRICT;
CREATE INDEX laid_by_effects_of_step ON laid_by_effects (run_no, step);
