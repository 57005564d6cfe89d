-- Runs whose timeout has passed. Index: runs_with_deadline.
SELECT no FROM runs WHERE deadline_at IS NOT NULL AND status = 'running' AND deadline_at <= ?1;
