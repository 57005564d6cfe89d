-- Who paused a workflow, if somebody did.
SELECT by, since FROM paused_workflows WHERE name = $1;
