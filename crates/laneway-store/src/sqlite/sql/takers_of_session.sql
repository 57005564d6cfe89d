-- What a session takes, how reluctantly, in which pool, and for how many more it has room where that is a pool's. Counted from what it
-- holds, which is little: tasks of all classes of that pool. Index: takers_of_session, and tasks_held.
SELECT class, delay, pool,
       CASE WHEN places IS NOT NULL THEN places - (
           SELECT count(*) FROM tasks JOIN takers AS same ON same.class = tasks.class AND same.session = tasks.session
           WHERE tasks.status = 'running' AND tasks.session = takers.session AND same.pool = takers.pool) END
FROM takers WHERE session = ?1;
