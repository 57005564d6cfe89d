-- Locks that somebody holds or waits for, by name. `;` is the first sign behind `:`. Along the primary key of holds; index: tasks_at_key.
SELECT substr(key, 6) FROM (
    SELECT key FROM holds WHERE key >= 'lock:' AND key < 'lock;'
    UNION
    SELECT gate_key FROM tasks WHERE gate_key >= 'lock:' AND gate_key < 'lock;'
)
ORDER BY key LIMIT ?1;
