-- Forgets the triggers of a workflow that are no more; $2 are those that are.
DELETE FROM triggers WHERE workflow = $1 AND key <> ALL ($2);
