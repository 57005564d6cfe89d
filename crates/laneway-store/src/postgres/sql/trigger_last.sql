-- What came of an end, at the trigger that it fired.
UPDATE triggers SET fired_at = $3, fired_run = $4, fault = $5 WHERE workflow = $1 AND key = $2;
