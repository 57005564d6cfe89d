-- The triggers of a workflow, and what they have fired, are forgotten.
DELETE FROM triggers WHERE workflow = ?1;
