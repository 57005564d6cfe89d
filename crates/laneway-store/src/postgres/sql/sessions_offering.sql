-- Nodes that take work of others, and what they have to offer.
SELECT node, offer FROM sessions WHERE offer IS NOT NULL ORDER BY node, id;
