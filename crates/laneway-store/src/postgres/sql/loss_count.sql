-- Counts a life of a node that was lost. The key `nodes` is locked, as for the event that tells of it, so that every loss has a number
-- of its own. Index: losses_no_key.
INSERT INTO losses (node, lost, no) SELECT $1, 1, coalesce((SELECT max(no) FROM losses), 0) + 1
ON CONFLICT (node) DO UPDATE SET lost = losses.lost + 1, no = excluded.no;
