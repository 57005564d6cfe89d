-- Runs of a session that is over belong to nobody. They are locked. Index: runs_owned.
UPDATE runs SET owner = NULL WHERE owner = $1;
