-- The triggers of a workflow fire no more. Once is enough.
UPDATE triggers SET paused_by = $2, due_at = NULL,
       paused_at = coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
WHERE workflow = $1 AND paused_by IS NULL
RETURNING key;
