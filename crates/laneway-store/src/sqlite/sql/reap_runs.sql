-- Runs of a session that is over belong to nobody. Index: runs_owned.
UPDATE runs SET owner = NULL WHERE owner = ?1;
