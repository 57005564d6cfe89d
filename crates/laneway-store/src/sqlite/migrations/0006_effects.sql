-- What steps did to the world, by task, name and key: the attempt is not part of it, so that a later one finds what an earlier
-- one did. A row is there before the effect begins, and has its result once it has happened. Which of all times that it was
-- run is told by `execution`; only that one, under its claim, may say what became of it. No WITHOUT ROWID: rows can be large.
CREATE TABLE effects (
    run_no      INTEGER NOT NULL,
    position    INTEGER NOT NULL,
    name        TEXT NOT NULL,
    key         TEXT NOT NULL,
    status      TEXT NOT NULL CHECK (status = 'started' OR status = 'done' OR status = 'failed'),
    attempt     INTEGER NOT NULL CHECK (attempt >= 1),
    session     TEXT NOT NULL,
    execution   TEXT NOT NULL,
    started_at  INTEGER NOT NULL,
    finished_at INTEGER CHECK ((finished_at IS NULL) = (status = 'started')),
    took_ms     INTEGER,
    exit_code   INTEGER CHECK (exit_code IS NOT NULL OR status <> 'done'),
    stdout      BLOB CHECK (stdout IS NULL OR status = 'done'),
    output      TEXT CHECK (output IS NULL OR status = 'done'),
    lacks       TEXT,                      -- why its result is not here, of one that has happened
    settled_by  TEXT,                      -- the person who said what became of it
    PRIMARY KEY (run_no, position, name, key)
) STRICT;
