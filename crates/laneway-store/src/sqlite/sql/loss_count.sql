-- Counts a life of a node that was lost. Along the unique index of `no`.
INSERT INTO losses (node, lost, no) VALUES (?1, 1, (SELECT coalesce(max(no), 0) + 1 FROM losses))
ON CONFLICT (node) DO UPDATE SET lost = lost + 1, no = excluded.no;
