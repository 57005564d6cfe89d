-- Sessions of processes of this host, of any schema that ever was. A worker that is elsewhere has a lease, and speaks to a service, never
-- to the store.
SELECT id, node FROM sessions WHERE expires_at IS NULL ORDER BY node, id;
