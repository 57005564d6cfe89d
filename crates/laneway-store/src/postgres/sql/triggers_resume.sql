-- The triggers of a workflow fire again, from here on: what came while they were paused is left out.
WITH moment AS (SELECT coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now)
UPDATE triggers SET paused_by = NULL, paused_at = NULL, dealt_with = now, due_at = CASE WHEN source IS NULL AND path IS NULL THEN now END
FROM moment WHERE workflow = $1 AND paused_by IS NOT NULL
RETURNING key;
