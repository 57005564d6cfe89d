-- What a session takes, how reluctantly, and for how many more it has room where that is a pool's. Counted from what it holds,
-- which is little. Index: takers_of_session, and tasks_held.
SELECT class, delay,
       CASE WHEN places IS NOT NULL THEN places - (SELECT count(*) FROM tasks WHERE status = 'running'
                                                   AND tasks.session = takers.session AND tasks.class = takers.class) END
FROM takers WHERE session = ?1;
