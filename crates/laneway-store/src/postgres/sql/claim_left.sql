-- Whether anything that a session takes is still there to be claimed. Where a claim before it got less than it wanted, others
-- have that in hand. Index: takers_of_session, and tasks_available.
SELECT EXISTS (
    SELECT 1 FROM takers JOIN tasks ON tasks.class = takers.class AND tasks.status = 'available'
    WHERE takers.session = $1 AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.run_no = tasks.run_no)
);
