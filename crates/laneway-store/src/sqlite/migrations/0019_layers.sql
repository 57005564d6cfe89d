-- What attempts changed in their views of the files of submitted runs (docs/design/files.md): the layer of each task, of its last
-- attempt that had one. `packed` has the layer itself if it is small; else it is a file under its hash, named in
-- `layer_files`, or only on `node`.
CREATE TABLE layers (
    run_no   INTEGER NOT NULL,
    position INTEGER NOT NULL,
    attempt  INTEGER NOT NULL,
    paths    INTEGER NOT NULL,
    bytes    INTEGER NOT NULL,
    hash     TEXT NOT NULL,
    packed   BLOB,
    node     TEXT,
    PRIMARY KEY (run_no, position)
) STRICT;

-- Files of layers: packed layers that are not small, and files that are kept apart because they are large.
CREATE TABLE layer_files (
    run_no   INTEGER NOT NULL,
    position INTEGER NOT NULL,
    hash     TEXT NOT NULL,
    PRIMARY KEY (run_no, position, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX layer_files_by_hash ON layer_files (hash);

-- The same of results that steps may take instead of being executed again.
CREATE TABLE cache_layers (
    key    TEXT NOT NULL PRIMARY KEY,
    paths  INTEGER NOT NULL,
    bytes  INTEGER NOT NULL,
    hash   TEXT NOT NULL,
    packed BLOB
) STRICT;

CREATE TABLE cache_layer_files (
    key  TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (key, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX cache_layer_files_by_hash ON cache_layer_files (hash);
