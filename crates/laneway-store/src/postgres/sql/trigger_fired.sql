-- How far a schedule has come, unless somebody else was faster. Of one that was paused meanwhile the pause stays.
UPDATE triggers
SET dealt_with = $4, due_at = CASE WHEN paused_by IS NULL THEN $5 END,
    fired_at = coalesce($6, fired_at),
    fired_run = CASE WHEN $6 IS NULL THEN fired_run ELSE $7 END,
    fault = CASE WHEN $6 IS NULL THEN fault ELSE $8 END
WHERE workflow = $1 AND key = $2 AND dealt_with = $3
RETURNING 1;
