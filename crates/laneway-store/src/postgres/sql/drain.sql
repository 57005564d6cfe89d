-- Sessions, of a node ($1) or one ($2), take nothing more. Those that did so before are not named again.
UPDATE sessions SET is_draining = true WHERE (node = $1 OR id = $2) AND NOT is_draining
RETURNING id, node, offer IS NOT NULL;
