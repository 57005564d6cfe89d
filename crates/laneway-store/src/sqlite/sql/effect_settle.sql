-- A person says what became of an effect, if it is still as it was seen.
UPDATE effects
SET status = ?5, finished_at = ?6, settled_by = ?7, took_ms = NULL, exit_code = ?8, stdout = NULL, output = NULL, lacks = NULL
WHERE run_no = ?1 AND position = ?2 AND name = ?3 AND key = ?4 AND execution = ?9 AND status = ?10;
