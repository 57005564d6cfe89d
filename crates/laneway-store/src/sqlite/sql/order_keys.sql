-- Keys of `order` on which somebody stands, by name, each found from the one before it: what it costs is what it gives. Along the
-- primary key.
WITH RECURSIVE named (key, place) AS (
    SELECT (SELECT min(key) FROM orders), 1
    UNION ALL
    SELECT (SELECT min(orders.key) FROM orders WHERE orders.key > named.key), place + 1
    FROM named WHERE key IS NOT NULL AND place < ?1
)
SELECT key, (SELECT count(*) FROM orders WHERE orders.key = named.key) FROM named WHERE key IS NOT NULL ORDER BY place;
