-- Every named limit, and how far it is used.
SELECT name, value, set_by, set_at,
       (SELECT count(*) FROM holds WHERE holds.key = 'limit:' || limits.name),
       (SELECT count(*) FROM tasks WHERE tasks.gate_key = 'limit:' || limits.name)
FROM limits ORDER BY name;
