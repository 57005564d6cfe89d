-- Tasks hold keys no more.
DELETE FROM holds USING unnest($1, $2, $3) AS freed (key, run_no, position)
WHERE holds.key = freed.key AND holds.run_no = freed.run_no AND holds.position = freed.position;
