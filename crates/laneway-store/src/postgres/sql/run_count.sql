-- Writes back what changes with every event of a run: two columns that stand in no index, so that the row stays on its
-- page. The runs are locked.
UPDATE runs SET last_event = made.last_event, unsettled = made.unsettled
FROM unnest($1, $2, $3) AS made (no, last_event, unsettled) WHERE runs.no = made.no;
