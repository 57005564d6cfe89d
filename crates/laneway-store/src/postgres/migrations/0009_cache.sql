-- Results that steps may take instead of being executed again, by their key. `parts` is what the key is made of, as hashes (JSON).
-- They outlive the run that recorded them, and hold what it left behind.
CREATE TABLE cache (
    key          TEXT NOT NULL PRIMARY KEY,
    workflow     TEXT NOT NULL,
    step         TEXT NOT NULL,
    parts        TEXT NOT NULL,
    run          TEXT NOT NULL,
    recorded_at  BIGINT NOT NULL,
    took_ms      BIGINT NOT NULL,
    exit_code    BIGINT,
    output       TEXT,
    bytes        BIGINT NOT NULL,
    hits         BIGINT NOT NULL DEFAULT 0,
    last_used_at BIGINT NOT NULL
);
CREATE INDEX cache_of_step ON cache (workflow, step, recorded_at);
CREATE INDEX cache_by_use ON cache (last_used_at, key);

CREATE TABLE cache_artifacts (
    key           TEXT NOT NULL,
    name          TEXT NOT NULL,
    hash          TEXT NOT NULL,
    size          BIGINT NOT NULL,
    is_executable BOOLEAN NOT NULL,
    PRIMARY KEY (key, name)
);
CREATE INDEX cache_artifacts_by_hash ON cache_artifacts (hash);

-- Why a task that might have taken one was executed (JSON). Goes with its run.
CREATE TABLE cache_misses (
    run_no   BIGINT NOT NULL,
    position BIGINT NOT NULL,
    attempt  BIGINT NOT NULL,
    body     TEXT NOT NULL,
    PRIMARY KEY (run_no, position)
);
