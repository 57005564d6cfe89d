-- Runs, as the gate keeper made them. Nobody sees one before its tasks are there: all of it is one transaction.
INSERT INTO runs (no, id, tail, workflow, version, dir, params, max_parallel, status, reason, owner, submitted_by,
                  submitted_at, started_at, finished_at, deadline_at, last_event, unsettled, closing, placement,
                  submitted_from, key, pauses, class, bundle, hooks, levels, parent, root_no, no_cache, not_before, is_visible)
SELECT made.*, true
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31) AS made;
