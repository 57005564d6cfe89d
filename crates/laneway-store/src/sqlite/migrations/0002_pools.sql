-- What warm containers did: every transition. The newest of each container says how it is now.
CREATE TABLE pool_events (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT,
    at        INTEGER NOT NULL,
    node      TEXT NOT NULL,
    session   TEXT NOT NULL,
    container TEXT NOT NULL,
    name      TEXT NOT NULL,
    version   INTEGER NOT NULL,
    body      TEXT NOT NULL
) STRICT;
CREATE INDEX pool_events_of_container ON pool_events (container, seq);
