-- All of a name, newest first, along the primary key.
SELECT name, no, version, dir, bundle, applied_at, applied_by FROM definitions WHERE name = ?1 ORDER BY no DESC LIMIT ?2;
