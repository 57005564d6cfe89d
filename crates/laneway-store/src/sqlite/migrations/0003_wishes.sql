-- Pools that sessions keep, by the names that documents gave them: each is known from the first task that it is for.
CREATE TABLE pools (
    session TEXT NOT NULL,
    name    TEXT NOT NULL,
    image   TEXT NOT NULL,
    max     INTEGER NOT NULL CHECK (max >= 1),
    PRIMARY KEY (session, name, image, max)
) STRICT, WITHOUT ROWID;

-- What people want of them: the newest wish for each name, numbered anew whenever there is one. They go with their session.
CREATE TABLE pool_wishes (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL,
    name    TEXT NOT NULL,
    warm    INTEGER CHECK (warm >= 1),     -- so many; NULL to let go of what is there
    version TEXT,                          -- the workflow whose pool is meant, also if the session does not know it yet
    UNIQUE (session, name),
    CHECK (version IS NULL OR warm IS NOT NULL)
) STRICT;
