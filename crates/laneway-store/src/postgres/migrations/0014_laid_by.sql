-- What services know an effect by: made when it is first begun, and with it wherever it goes.
ALTER TABLE effects ADD COLUMN token TEXT;

-- What items did to the world whose list is being made anew: an item of the same value takes it up again. Of equal values in one list the
-- first is the first, and so on (`nth`). The value is in no index: it may be larger than an entry of one.
CREATE TABLE laid_by_effects (
    run_no      BIGINT NOT NULL,
    step        BIGINT NOT NULL,           -- whose items they were
    item        TEXT NOT NULL,             -- the value
    nth         BIGINT NOT NULL,
    name        TEXT COLLATE "C" NOT NULL,
    key         TEXT COLLATE "C" NOT NULL,
    status      TEXT NOT NULL,
    attempt     BIGINT NOT NULL,
    session     TEXT NOT NULL,
    execution   TEXT NOT NULL,
    started_at  BIGINT NOT NULL,
    finished_at BIGINT,
    took_ms     BIGINT,
    exit_code   BIGINT,
    stdout      BYTEA,
    output      TEXT,
    lacks       TEXT,
    settled_by  TEXT,
    token       TEXT
);
CREATE INDEX laid_by_effects_of_step ON laid_by_effects (run_no, step);
