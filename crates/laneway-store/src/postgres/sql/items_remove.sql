-- The items of steps are gone with their lists, along the primary key. Nobody holds one: the runs had ended.
DELETE FROM tasks USING unnest($1, $2, $3) AS gone (run_no, first, behind)
WHERE tasks.run_no = gone.run_no AND tasks.position >= gone.first AND tasks.position < gone.behind AND item IS NOT NULL;
