-- The triggers of a workflow fire no more. Once is enough.
UPDATE triggers SET paused_by = ?2, paused_at = ?3, due_at = NULL WHERE workflow = ?1 AND paused_by IS NULL;
