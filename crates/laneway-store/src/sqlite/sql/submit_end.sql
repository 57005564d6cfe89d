-- All tasks are there: the run can be seen, as of now.
UPDATE runs SET is_visible = 1, submitted_at = ?2 WHERE id = ?1;
