-- The first shape of the store. Later files only add (PROTOCOL: Versions).
-- Words in `status`, `gate`, `closing` and `reason` are those of laneway-core; CHECKs tie columns to states. What is written with every
-- task is compared word by word: of `IN` with more than two words SQLite makes a table, anew for each statement that checks it, and the five
-- of a task took half of the time of writing it.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Documents by content. A plan is made from the document again, so that it is never stored twice.
CREATE TABLE workflows (
    version    TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    document   TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Workflows that were applied by name. The newest number of a name is what starts.
CREATE TABLE definitions (
    name       TEXT NOT NULL,
    no         INTEGER NOT NULL CHECK (no >= 1),
    version    TEXT NOT NULL REFERENCES workflows (version),
    dir        TEXT NOT NULL,              -- from where it was applied
    bundle     TEXT,                       -- what lay beside it (`blobs`); NULL for nothing
    applied_at INTEGER NOT NULL,
    applied_by TEXT NOT NULL,
    PRIMARY KEY (name, no)
) STRICT, WITHOUT ROWID;

-- Bytes by the hash of their content, in chunks, so that no row is large. All of one is there, or nothing.
-- Its row comes first, so that nothing is left that nobody finds; what is not whole nobody is given.
CREATE TABLE blobs (
    hash       TEXT PRIMARY KEY,
    size       INTEGER NOT NULL CHECK (size >= 0),
    is_whole   INTEGER NOT NULL DEFAULT 0 CHECK (is_whole IN (0, 1)),
    touched_at INTEGER NOT NULL            -- when somebody last brought it: nobody may have named it yet
) STRICT, WITHOUT ROWID;
CREATE TABLE blob_chunks (
    hash  TEXT NOT NULL,
    no    INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (hash, no)
) STRICT;

-- Values that nobody reads back but a step: sealed with a key that the store does not have.
CREATE TABLE secrets (
    name   TEXT PRIMARY KEY,
    sealed BLOB NOT NULL,
    set_at INTEGER NOT NULL,
    set_by TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    id            TEXT PRIMARY KEY,
    node          TEXT NOT NULL,
    pid           INTEGER NOT NULL,
    registered_at INTEGER NOT NULL,
    slots         INTEGER NOT NULL,
    offer         TEXT,                    -- what its node can run for others; NULL for one that runs its own run only
    is_draining   INTEGER NOT NULL DEFAULT 0 CHECK (is_draining IN (0, 1)),
    renewed_at    INTEGER NOT NULL,        -- when it last told what it has done
    tally         TEXT,                    -- that; NULL for nothing yet
    asks          INTEGER NOT NULL DEFAULT 0,  -- how often it asked for work, and how often others were in its way
    contentions   INTEGER NOT NULL DEFAULT 0,
    last_active_at INTEGER,                -- when that last changed
    token         TEXT,                    -- of a worker that is elsewhere: with which it came
    ttl_ms        INTEGER CHECK (ttl_ms > 0),
    expires_at    INTEGER,                 -- its lease, by this store's clock; a process of this host has a lock instead
    CHECK ((token IS NULL) = (ttl_ms IS NULL) AND (token IS NULL) = (expires_at IS NULL))
) STRICT, WITHOUT ROWID;

-- What nodes that take work of others tell of themselves.
CREATE TABLE node_events (
    seq     INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    node    TEXT NOT NULL,
    session TEXT NOT NULL,
    name    TEXT NOT NULL,
    version INTEGER NOT NULL,
    body    TEXT NOT NULL
) STRICT;
CREATE INDEX node_events_of_node ON node_events (node, seq);

-- Who can run a task: its engine and the labels it requires, as one text.
CREATE TABLE classes (
    no   INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE
) STRICT;

-- Which sessions take tasks of a class: those that can run it, live, and are not being drained.
CREATE TABLE takers (
    class   INTEGER NOT NULL,
    session TEXT NOT NULL,
    delay   INTEGER NOT NULL DEFAULT 0,   -- by how much younger they look to it: it lacks a label that they prefer
    PRIMARY KEY (class, session)
) STRICT, WITHOUT ROWID;
CREATE INDEX takers_of_session ON takers (session);

CREATE TABLE runs (
    no           INTEGER PRIMARY KEY,      -- short key for the rows below; people see `id`
    id           TEXT NOT NULL UNIQUE,
    tail         TEXT NOT NULL,            -- end of the id: what people type
    workflow     TEXT NOT NULL,
    version      TEXT NOT NULL REFERENCES workflows (version),
    dir          TEXT NOT NULL,            -- where steps run
    bundle       TEXT,                     -- what they find there (`blobs`), if that directory is not on their node
    params       TEXT NOT NULL,
    max_parallel INTEGER NOT NULL CHECK (max_parallel >= 1),
    status       TEXT NOT NULL CHECK (status = 'running' OR status = 'succeeded' OR status = 'queued' OR status = 'failed' OR status = 'canceled'),
    reason       TEXT,
    closing      TEXT CHECK (closing = 'halted' OR closing = 'aborted' OR closing = 'canceled' OR closing = 'run_timeout'),
    placement    TEXT NOT NULL CHECK (placement = 'local' OR placement = 'spread' OR placement = 'pinned'),
    class        INTEGER CHECK ((class IS NOT NULL) = (placement = 'pinned')),  -- who can run all of a pinned one
    owner        TEXT,                     -- the session to which a local run belongs; NULL when that is gone
    submitted_by TEXT NOT NULL,
    submitted_from TEXT NOT NULL,          -- the node
    key          TEXT,                     -- whoever submits with the same one again gets this run
    pauses       TEXT,                     -- who paused it, or its workflow
    hooks        TEXT,                     -- ends at which its workflow has hooks, each between blanks
    submitted_at INTEGER NOT NULL,
    started_at   INTEGER,
    finished_at  INTEGER,
    deadline_at  INTEGER,                  -- the run's timeout
    last_event   INTEGER NOT NULL,
    unsettled    INTEGER NOT NULL CHECK (unsettled >= 0),
    is_visible   INTEGER NOT NULL CHECK (is_visible IN (0, 1)),  -- 0 while a large submit is under way
    CHECK ((status = 'succeeded' OR status = 'failed' OR status = 'canceled') = (finished_at IS NOT NULL))
) STRICT;
CREATE INDEX runs_by_tail ON runs (tail);
CREATE INDEX runs_by_workflow ON runs (workflow, no);
CREATE INDEX runs_unfinished ON runs (no) WHERE status IN ('queued', 'running');
CREATE INDEX runs_owned ON runs (owner) WHERE owner IS NOT NULL;
CREATE INDEX runs_queued ON runs (workflow, no) WHERE status = 'queued';
CREATE INDEX runs_running ON runs (workflow, no) WHERE status = 'running';
CREATE UNIQUE INDEX runs_by_key ON runs (key) WHERE key IS NOT NULL;
CREATE INDEX runs_with_deadline ON runs (deadline_at) WHERE deadline_at IS NOT NULL AND status = 'running';
CREATE INDEX runs_by_bundle ON runs (bundle) WHERE bundle IS NOT NULL;
CREATE INDEX runs_going ON runs (no) WHERE is_visible = 0;

-- Keys of runs that were removed, for a while: whoever submits with one again is told the run of that.
CREATE TABLE used_keys (
    key        TEXT PRIMARY KEY,
    run        TEXT NOT NULL,
    removed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- How much runs that are over take up, as of their last event then.
CREATE TABLE run_bytes (
    run_no     INTEGER PRIMARY KEY,
    last_event INTEGER NOT NULL,
    bytes      INTEGER NOT NULL CHECK (bytes >= 0)
) STRICT;

CREATE TABLE tasks (
    run_no      INTEGER NOT NULL,
    position    INTEGER NOT NULL,          -- of the step in its plan
    class       INTEGER NOT NULL,          -- who can run it (`classes`); of a run that is local to its owner, -run_no, or that of the run above it
    status      TEXT NOT NULL CHECK (
                    status = 'pending' OR status = 'available' OR status = 'running' OR status = 'succeeded'
                    OR status = 'parked' OR status = 'failed' OR status = 'canceled' OR status = 'skipped'),
    gate        TEXT CHECK (
                    gate = 'needs' OR gate = 'max_parallel' OR gate = 'lock' OR gate = 'limit' OR gate = 'order' OR gate = 'run_at' OR gate = 'rate'
                    OR gate = 'max_runs' OR gate = 'paused' OR gate = 'node' OR gate = 'group' OR gate = 'level'),
    gate_key    TEXT,                      -- the key at which it waits, of a gate that has one
    wake_at     INTEGER,                   -- when to look at it again, if nothing happens before
    rank        INTEGER,                   -- order of waiters and of claims: since when it is ready
    run_at      INTEGER,
    attempt     INTEGER NOT NULL DEFAULT 0,
    retries     INTEGER NOT NULL DEFAULT 0,
    lost        INTEGER NOT NULL DEFAULT 0,
    session     TEXT,                      -- holder of the claim
    is_ahead    INTEGER NOT NULL DEFAULT 0 CHECK (is_ahead IN (0, 1)),  -- claimed while it waits for max_parallel
    node        TEXT,
    stop        TEXT CHECK (  -- why its holder, or the run that it has started, is asked to end
                    stop = 'aborted' OR stop = 'canceled' OR stop = 'run_timeout' OR stop = 'halted' OR stop = 'timeout'),
    reason      TEXT,
    detail      TEXT,
    exit_code   INTEGER,
    output      TEXT,
    started_at  INTEGER,                   -- NULL while claimed and not yet started
    took_ms     INTEGER,                   -- as the holder of the claim measured it
    finished_at INTEGER,
    PRIMARY KEY (run_no, position),
    CHECK ((status = 'pending') = (gate IS NOT NULL)),
    CHECK ((gate IS 'order' OR gate IS 'lock' OR gate IS 'limit' OR gate IS 'rate') = (gate_key IS NOT NULL)),
    CHECK (wake_at IS NULL OR gate IN ('run_at', 'rate')),
    CHECK ((status = 'running') = (session IS NOT NULL)),
    CHECK (stop IS NULL OR status IN ('running', 'parked')),
    CHECK (is_ahead = 0 OR status = 'running'),
    CHECK ((status = 'succeeded' OR status = 'failed' OR status = 'canceled' OR status = 'skipped') = (finished_at IS NOT NULL))
) STRICT, WITHOUT ROWID;
-- One partial index per question that is asked while work goes on; final states are in none of them.
CREATE INDEX tasks_available ON tasks (class, rank, run_no, position) WHERE status = 'available';
CREATE INDEX tasks_live      ON tasks (run_no) WHERE status IN ('available', 'running');
CREATE INDEX tasks_waiting   ON tasks (run_no, rank, position) WHERE gate = 'max_parallel';
CREATE INDEX tasks_timed     ON tasks (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX tasks_at_key    ON tasks (gate_key, rank, run_no, position) WHERE gate_key IS NOT NULL;
CREATE INDEX tasks_for_nodes ON tasks (class) WHERE gate = 'node';
CREATE INDEX tasks_held      ON tasks (session) WHERE status = 'running';
CREATE INDEX tasks_stopping  ON tasks (session) WHERE stop IS NOT NULL;

-- How the predecessors of each needs set of a run have ended: the countdown that opens the gate `needs`.
CREATE TABLE needs_sets (
    run_no      INTEGER NOT NULL,
    set_no      INTEGER NOT NULL,
    unsettled   INTEGER NOT NULL CHECK (unsettled >= 0),
    succeeded   INTEGER NOT NULL DEFAULT 0,
    failed      INTEGER NOT NULL DEFAULT 0,
    passed_over INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run_no, set_no)
) STRICT, WITHOUT ROWID;

-- Workflows of which nothing starts until somebody resumes them.
CREATE TABLE paused_workflows (
    name   TEXT PRIMARY KEY,
    by     TEXT NOT NULL,
    since  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Named limits, shared by every run: so many tasks at once (`3`), or so many in a time (`100/1m`).
CREATE TABLE limits (
    name   TEXT PRIMARY KEY,
    value  TEXT NOT NULL,
    set_by TEXT NOT NULL,
    set_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A row for each key that needs one: what is locked before its holders are counted, and when the next may pass a rate,
-- in microseconds.
CREATE TABLE keys (
    name TEXT PRIMARY KEY,
    tat  INTEGER
) STRICT, WITHOUT ROWID;

-- Which tasks hold a lock or a limit: those that are available or running, and no others.
CREATE TABLE holds (
    key      TEXT NOT NULL,
    run_no   INTEGER NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (key, run_no, position)
) STRICT, WITHOUT ROWID;

-- Tasks with an `order` that have yet to end. Versions are kept in a form that sorts as they compare.
CREATE TABLE orders (
    key      TEXT NOT NULL,
    version  TEXT NOT NULL,
    run_no   INTEGER NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (key, version, run_no, position)
) STRICT, WITHOUT ROWID;

-- Every attempt that has ended, whatever its end.
CREATE TABLE attempts (
    run_no      INTEGER NOT NULL,
    position    INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    session     TEXT NOT NULL,
    node        TEXT NOT NULL,
    outcome     TEXT NOT NULL CHECK (
                    outcome = 'succeeded' OR outcome = 'failed' OR outcome = 'canceled' OR outcome = 'lost' OR outcome = 'returned'),
    reason      TEXT,
    detail      TEXT,
    exit_code   INTEGER,
    started_at  INTEGER,
    finished_at INTEGER NOT NULL,
    took_ms     INTEGER,
    PRIMARY KEY (run_no, position, attempt)
) STRICT, WITHOUT ROWID;

-- Files that attempts left behind, by their paths. What is in them is kept by hash.
CREATE TABLE artifacts (
    run_no        INTEGER NOT NULL,
    position      INTEGER NOT NULL,
    attempt       INTEGER NOT NULL,
    name          TEXT NOT NULL,
    hash          TEXT NOT NULL,
    size          INTEGER NOT NULL CHECK (size >= 0),
    is_executable INTEGER NOT NULL CHECK (is_executable IN (0, 1)),
    PRIMARY KEY (run_no, position, attempt, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX artifacts_by_hash ON artifacts (hash);

CREATE TABLE events (
    run_no  INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    name    TEXT NOT NULL,
    version INTEGER NOT NULL,
    body    TEXT NOT NULL,
    PRIMARY KEY (run_no, seq)
) STRICT, WITHOUT ROWID;

-- Runs of which something stored cannot be read: nothing of them is claimed, promoted or changed until somebody
-- takes them out. What could not be read stays where it is, in its own row.
CREATE TABLE quarantine (
    run_no INTEGER PRIMARY KEY,
    what   TEXT NOT NULL,
    why    TEXT NOT NULL,
    since  INTEGER NOT NULL
) STRICT;

-- What starts a workflow by itself: schedules, ends of other workflows' runs (`source`), and webhooks (`path`).
CREATE TABLE triggers (
    workflow   TEXT NOT NULL,
    key        TEXT NOT NULL,
    version    TEXT NOT NULL,              -- in which it is written
    source     TEXT,
    ends       TEXT,                       -- those that count, each between blanks
    path       TEXT,                       -- where a webhook listens
    dealt_with INTEGER NOT NULL,           -- everything up to here is
    due_at     INTEGER,                    -- when to look at a schedule again
    paused_by  TEXT,
    paused_at  INTEGER,
    fired_at   INTEGER,
    fired_run  TEXT,                       -- what came of that
    fault      TEXT,
    PRIMARY KEY (workflow, key),
    CHECK ((source IS NULL) = (ends IS NULL)),
    CHECK (path IS NULL OR source IS NULL),
    CHECK ((paused_by IS NULL) = (paused_at IS NULL)),
    CHECK (due_at IS NULL OR (source IS NULL AND path IS NULL AND paused_by IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX triggers_due ON triggers (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX triggers_after ON triggers (source) WHERE source IS NOT NULL;
CREATE UNIQUE INDEX triggers_by_path ON triggers (path) WHERE path IS NOT NULL;

-- Ends of runs that fire a trigger or have hooks (the key `hooks`), and have not yet. Each is there once: `seq` is the number of the run's last event.
CREATE TABLE firings (
    run      TEXT NOT NULL,
    seq      INTEGER NOT NULL,
    ended    TEXT NOT NULL,                -- its workflow, and how it ended
    status   TEXT NOT NULL,
    workflow TEXT NOT NULL,                -- whose trigger
    key      TEXT NOT NULL,
    PRIMARY KEY (run, seq, workflow, key)
) STRICT, WITHOUT ROWID;

-- Who may ask the service for what. A secret is never kept, only its SHA-256; what is revoked stays listed.
CREATE TABLE tokens (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    role       TEXT NOT NULL CHECK (role IN ('viewer', 'operator', 'admin', 'worker')),
    hash       BLOB NOT NULL CHECK (length(hash) = 32),
    tail       TEXT NOT NULL,              -- its last characters, by which people tell them apart
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_by TEXT,
    revoked_at INTEGER,
    CHECK ((revoked_by IS NULL) = (revoked_at IS NULL))
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX tokens_by_name ON tokens (name) WHERE revoked_at IS NULL;

-- What people changed through the service.
CREATE TABLE audit (
    seq  INTEGER PRIMARY KEY,
    at   INTEGER NOT NULL,
    by   TEXT NOT NULL,
    act  TEXT NOT NULL,
    what TEXT NOT NULL,
    origin TEXT NOT NULL                   -- the address it was asked from
) STRICT;
