-- A node's fact. The key `nodes` is locked, so that the order of numbers is that of commits, without gaps.
INSERT INTO node_events (seq, at, node, session, name, version, body)
SELECT coalesce((SELECT max(seq) FROM node_events), 0) + 1,
       coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint), $2, $3, $4, $5, $6;
