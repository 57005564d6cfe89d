-- The holder of a claim says that it has started. A statement of its own: these columns stand in no index, and an
-- UPDATE that names one which does writes that index anew. The WHERE is the fence.
UPDATE tasks
SET started_at = ?6, node = ?7
WHERE run_no = ?1 AND position = ?2 AND status = ?3 AND attempt + given_back = ?4 AND session IS ?5;
