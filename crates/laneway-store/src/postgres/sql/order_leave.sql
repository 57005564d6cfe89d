-- Tasks have ended: larger versions need not wait for them.
DELETE FROM orders USING unnest($1, $2, $3, $4) AS ended (key, version, run_no, position)
WHERE orders.key = ended.key AND orders.version = ended.version AND orders.run_no = ended.run_no
  AND orders.position = ended.position;
