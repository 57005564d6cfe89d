-- Forgets the triggers of a workflow that are no more; ?2 is a list of those that are.
DELETE FROM triggers WHERE workflow = ?1 AND key NOT IN (SELECT value FROM json_each(?2));
