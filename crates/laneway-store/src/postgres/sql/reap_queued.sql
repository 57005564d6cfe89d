-- Queued runs of a session that is over belong to nobody: said before anything of it ends, so that none of them starts in
-- the place of another. Index: runs_owned.
UPDATE runs SET owner = NULL WHERE owner = $1 AND status = 'queued';
