-- Those of a name below a number, newest first, along the primary key.
SELECT name, no, version, dir, bundle, applied_at, applied_by FROM definitions WHERE name = ?1 AND no < ?2
ORDER BY no DESC LIMIT ?3;
