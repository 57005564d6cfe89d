-- The triggers of a workflow fire again, from here on: what came while they were paused is left out.
UPDATE triggers SET paused_by = NULL, paused_at = NULL, dealt_with = ?2, due_at = CASE WHEN source IS NULL AND path IS NULL THEN ?2 END
WHERE workflow = ?1 AND paused_by IS NOT NULL;
