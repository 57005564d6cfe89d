-- The chunks of a blob that is no more.
DELETE FROM blob_chunks WHERE hash = ?1;
