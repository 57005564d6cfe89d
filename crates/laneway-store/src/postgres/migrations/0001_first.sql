-- The first shape of the store. Later files only add (PROTOCOL: Versions).
-- Words in `status`, `gate`, `closing` and `reason` are those of laneway-core; CHECKs tie columns to states. Moments are
-- milliseconds since 1970 by this database's clock. What was given as text is kept as text, so that it is read back byte
-- for byte. Ids compare by bytes (`COLLATE "C"`), whatever the database's language.
--
-- Tables whose rows change all the time leave room in their pages (`fillfactor`), so that a change that touches no index
-- stays on its page, and are vacuumed early: after some thousand changes, however large they are.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- Documents by content. A plan is made from the document again, so that it is never stored twice.
CREATE TABLE workflows (
    version    TEXT COLLATE "C" PRIMARY KEY,
    name       TEXT NOT NULL,
    document   TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE sessions (
    id            TEXT COLLATE "C" PRIMARY KEY,
    node          TEXT NOT NULL,
    pid           BIGINT NOT NULL,
    registered_at BIGINT NOT NULL,
    renewed_at    BIGINT NOT NULL,           -- a reaper acts only if it has itself renewed since its victim expired
    expires_at    BIGINT NOT NULL            -- the lease: renewed by its node, judged by this database's clock
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- No foreign key to `workflows`: every submit would lock that row, and nothing ever deletes one.
CREATE TABLE runs (
    no           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- short key for the rows below; people see `id`
    id           TEXT COLLATE "C" NOT NULL UNIQUE,
    tail         TEXT COLLATE "C" NOT NULL,  -- end of the id: what people type
    workflow     TEXT NOT NULL,
    version      TEXT COLLATE "C" NOT NULL,
    dir          TEXT NOT NULL,              -- where steps run
    params       TEXT NOT NULL,
    max_parallel BIGINT NOT NULL CHECK (max_parallel >= 1),
    status       TEXT NOT NULL CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'canceled')),
    reason       TEXT,
    closing      TEXT CHECK (closing IN ('halted', 'aborted', 'canceled', 'run_timeout')),
    owner        TEXT COLLATE "C",           -- the session to which a local run belongs; NULL when that is gone
    submitted_by TEXT NOT NULL,
    submitted_at BIGINT NOT NULL,
    started_at   BIGINT,
    finished_at  BIGINT,
    deadline_at  BIGINT,                     -- the run's timeout
    last_event   BIGINT NOT NULL,
    unsettled    BIGINT NOT NULL CHECK (unsettled >= 0),
    is_visible   BOOLEAN NOT NULL,           -- false while a large submit is under way
    CHECK ((status IN ('succeeded', 'failed', 'canceled')) = (finished_at IS NOT NULL))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX runs_by_tail ON runs (tail);
CREATE INDEX runs_unfinished ON runs (no) WHERE status IN ('queued', 'running');
CREATE INDEX runs_owned ON runs (owner) WHERE owner IS NOT NULL;
CREATE INDEX runs_with_deadline ON runs (deadline_at) WHERE deadline_at IS NOT NULL AND status = 'running';

CREATE TABLE tasks (
    run_no      BIGINT NOT NULL,
    position    BIGINT NOT NULL,             -- of the step in its plan
    class       BIGINT NOT NULL,             -- who can run it; a run that is local to its owner is class -run_no
    status      TEXT NOT NULL CHECK (status IN
                    ('pending', 'available', 'running', 'parked', 'succeeded', 'failed', 'canceled', 'skipped')),
    gate        TEXT CHECK (gate IN ('needs', 'run_at', 'max_parallel')),
    rank        BIGINT,                      -- order of waiters and of claims: since when it is ready
    run_at      BIGINT,
    attempt     BIGINT NOT NULL DEFAULT 0,
    retries     BIGINT NOT NULL DEFAULT 0,
    lost        BIGINT NOT NULL DEFAULT 0,
    session     TEXT COLLATE "C",            -- holder of the claim
    is_ahead    BOOLEAN NOT NULL DEFAULT false,  -- claimed while it waits for max_parallel
    node        TEXT,
    stop        TEXT CHECK (stop IN ('aborted', 'canceled', 'run_timeout')),  -- what its holder is asked to do
    reason      TEXT,
    detail      TEXT,
    exit_code   BIGINT,
    output      TEXT,
    started_at  BIGINT,                      -- NULL while claimed and not yet started
    took_ms     BIGINT,                      -- as the holder of the claim measured it
    finished_at BIGINT,
    PRIMARY KEY (run_no, position),
    CHECK ((status = 'pending') = (gate IS NOT NULL)),
    CHECK ((status = 'running') = (session IS NOT NULL)),
    CHECK (stop IS NULL OR status = 'running'),
    CHECK (NOT is_ahead OR status = 'running'),
    CHECK ((status IN ('succeeded', 'failed', 'canceled', 'skipped')) = (finished_at IS NOT NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.02);
-- One partial index per question that is asked while work goes on; final states are in none of them.
CREATE INDEX tasks_available ON tasks (class, rank, run_no, position) WHERE status = 'available';
CREATE INDEX tasks_live      ON tasks (run_no) WHERE status IN ('available', 'running');
CREATE INDEX tasks_waiting   ON tasks (run_no, rank, position) WHERE gate = 'max_parallel';
CREATE INDEX tasks_timed     ON tasks (run_at) WHERE gate = 'run_at';
CREATE INDEX tasks_held      ON tasks (session) WHERE status = 'running';
CREATE INDEX tasks_stopping  ON tasks (session) WHERE stop IS NOT NULL;

-- How the predecessors of each needs set of a run have ended: the countdown that opens the gate `needs`.
CREATE TABLE needs_sets (
    run_no      BIGINT NOT NULL,
    set_no      BIGINT NOT NULL,
    unsettled   BIGINT NOT NULL CHECK (unsettled >= 0),
    succeeded   BIGINT NOT NULL DEFAULT 0,
    failed      BIGINT NOT NULL DEFAULT 0,
    passed_over BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (run_no, set_no)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0);

-- Every attempt that has ended, whatever its end.
CREATE TABLE attempts (
    run_no      BIGINT NOT NULL,
    position    BIGINT NOT NULL,
    attempt     BIGINT NOT NULL,
    session     TEXT COLLATE "C" NOT NULL,
    node        TEXT NOT NULL,
    outcome     TEXT NOT NULL CHECK (outcome IN ('succeeded', 'failed', 'canceled', 'lost', 'returned')),
    reason      TEXT,
    detail      TEXT,
    exit_code   BIGINT,
    started_at  BIGINT,
    finished_at BIGINT NOT NULL,
    took_ms     BIGINT,
    PRIMARY KEY (run_no, position, attempt)
);

CREATE TABLE events (
    run_no  BIGINT NOT NULL,
    seq     BIGINT NOT NULL,
    at      BIGINT NOT NULL,
    name    TEXT NOT NULL,
    version BIGINT NOT NULL,
    body    TEXT NOT NULL,
    PRIMARY KEY (run_no, seq)
);

-- Runs of which something stored cannot be read: nothing of them is claimed, promoted or changed until somebody
-- takes them out. What could not be read stays where it is, in its own row.
CREATE TABLE quarantine (
    run_no BIGINT PRIMARY KEY,
    what   TEXT NOT NULL,
    why    TEXT NOT NULL,
    since  BIGINT NOT NULL
);
