-- Somebody brings a blob of which all may be there: it is not swept before they could name it. A statement of its own: one that
-- was being swept is gone for the next. What was brought lately ($3) is not written again.
UPDATE blobs SET touched_at = moment.now
FROM (SELECT coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now) AS moment
WHERE hash = $1 AND is_whole AND touched_at < moment.now - $3;
