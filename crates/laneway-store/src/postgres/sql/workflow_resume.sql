-- A workflow goes on.
DELETE FROM paused_workflows WHERE name = $1 RETURNING name;
