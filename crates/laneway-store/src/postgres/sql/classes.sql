-- name: class
SELECT no, text FROM classes WHERE text = ANY ($1);

-- name: class_add
-- Adds classes that have no row yet. The caller holds `classes_lock`.
INSERT INTO classes (text) SELECT unnest($1) ON CONFLICT DO NOTHING RETURNING no, text;

-- name: classes_lock
-- Serializes new classes with sessions that begin to accept classes. Without the lock, each would
-- miss the other's row. The lock ends with the transaction.
SELECT pg_advisory_xact_lock(hashtext('laneway classes'), hashtext(current_schema()));
