-- Writes back what a verb made of runs. They are locked since `run_load`.
UPDATE runs
SET status = made.status, reason = made.reason, closing = made.closing, owner = made.owner,
    started_at = made.started_at, finished_at = made.finished_at, deadline_at = made.deadline_at,
    last_event = made.last_event, unsettled = made.unsettled, pauses = made.pauses, levels = made.levels,
    not_before = made.not_before
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
     AS made (no, status, reason, closing, owner, started_at, finished_at, deadline_at, last_event, unsettled, pauses, levels,
              not_before)
WHERE runs.no = made.no;
