-- Who there is, without what they are.
SELECT name, set_at, set_by FROM secrets ORDER BY name;
