-- What steps did to the world, by task, name and key: the attempt is not part of it, so that a later one finds what an earlier
-- one did. A row is there before the effect begins, and has its result once it has happened. Which of all times that it was
-- run is told by `execution`; only that one, under its claim, may say what became of it.
CREATE TABLE effects (
    run_no      BIGINT NOT NULL,
    position    BIGINT NOT NULL,
    name        TEXT COLLATE "C" NOT NULL,
    key         TEXT COLLATE "C" NOT NULL,
    status      TEXT NOT NULL CHECK (status IN ('started', 'done', 'failed')),
    attempt     BIGINT NOT NULL CHECK (attempt >= 1),
    session     TEXT NOT NULL,
    execution   TEXT NOT NULL,
    started_at  BIGINT NOT NULL,
    finished_at BIGINT CHECK ((finished_at IS NULL) = (status = 'started')),
    took_ms     BIGINT,
    exit_code   BIGINT CHECK (exit_code IS NOT NULL OR status <> 'done'),
    stdout      BYTEA CHECK (stdout IS NULL OR status = 'done'),
    output      TEXT CHECK (output IS NULL OR status = 'done'),
    lacks       TEXT,                      -- why its result is not here, of one that has happened
    settled_by  TEXT,                      -- the person who said what became of it
    PRIMARY KEY (run_no, position, name, key)
);
