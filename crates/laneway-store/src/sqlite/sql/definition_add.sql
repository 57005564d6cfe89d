-- The next of a name.
INSERT INTO definitions (name, no, version, dir, bundle, applied_at, applied_by) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);
