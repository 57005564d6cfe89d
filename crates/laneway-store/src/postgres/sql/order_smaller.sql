-- How many tasks with a smaller version have yet to end, for each version on its key, counted up to a number.
SELECT asked.key, asked.version, asked.up_to,
       (SELECT count(*) FROM (SELECT 1 FROM orders WHERE orders.key = asked.key AND orders.version < asked.version
                              LIMIT asked.up_to) AS smaller)
FROM unnest($1, $2, $3) AS asked (key, version, up_to);
