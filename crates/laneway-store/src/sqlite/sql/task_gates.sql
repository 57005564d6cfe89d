-- Which gate each task of a run waits for, in the order of the plan.
SELECT gate FROM tasks WHERE run_no = ?1 ORDER BY position;
