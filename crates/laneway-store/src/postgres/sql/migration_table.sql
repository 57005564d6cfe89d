-- Which migrations were applied. The advisory lock is held: two at once would both try to make it.
CREATE TABLE IF NOT EXISTS laneway_migrations (
    version    BIGINT PRIMARY KEY,
    applied_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
