-- Writes back what the gate keeper made of a task. The WHERE is the fence: the row must be as the keeper saw it, and
-- that is what a claim is compared with.
UPDATE tasks
SET status = ?6, gate = ?7, rank = ?8, run_at = ?9, attempt = ?10, retries = ?11, lost = ?12, session = ?13,
    is_ahead = ?14, node = ?15, stop = ?16, reason = ?17, detail = ?18, exit_code = ?19, output = ?20,
    started_at = ?21, took_ms = ?22, finished_at = ?23, gate_key = ?24, wake_at = ?25, class = ?26,
    wait = ?27, due_at = ?28, growth = ?29, given_back = ?30, start_by = ?31, fence = ?32
WHERE run_no = ?1 AND position = ?2 AND status = ?3 AND attempt + given_back = ?4 AND session IS ?5;
