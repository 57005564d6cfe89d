-- Locks that somebody holds or waits for, by name, each found from the one before it: what it costs is what it gives, however many
-- tasks stand at one of them. `;` is the first sign behind `:`. Along the primary key of holds; index: tasks_at_key.
WITH RECURSIVE named (key, place) AS (
    SELECT (SELECT min(key) FROM (
        SELECT min(key) AS key FROM holds WHERE key >= 'lock:' AND key < 'lock;'
        UNION ALL
        SELECT min(gate_key) FROM tasks WHERE gate_key >= 'lock:' AND gate_key < 'lock;'
    ) AS least), 1
    UNION ALL
    SELECT (SELECT min(key) FROM (
        SELECT min(key) AS key FROM holds WHERE key > named.key AND key < 'lock;'
        UNION ALL
        SELECT min(gate_key) FROM tasks WHERE gate_key > named.key AND gate_key < 'lock;'
    ) AS least), place + 1 FROM named WHERE key IS NOT NULL AND place < ?1
)
SELECT substr(key, 6) FROM named WHERE key IS NOT NULL ORDER BY place;
