-- How many triggers of a workflow fire.
SELECT count(*) FROM triggers WHERE workflow = $1 AND paused_by IS NULL;
