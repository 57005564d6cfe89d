-- Writes back what a verb made of a run. Under the one writer nobody else can have changed it since `run_load`.
UPDATE runs
SET status = ?2, reason = ?3, closing = ?4, owner = ?5, started_at = ?6, finished_at = ?7, deadline_at = ?8,
    last_event = ?9, unsettled = ?10, pauses = ?11, levels = ?12, not_before = ?13
WHERE no = ?1;
