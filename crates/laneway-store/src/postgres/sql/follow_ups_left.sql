-- Follow-ups up to a number, each once, and the largest number there is. A process that lives does
-- them at once, so that those which a sweep finds twice are of one that died. Along the primary key.
SELECT (SELECT max(seq) FROM follow_ups), NULL, NULL, NULL, NULL
UNION ALL
SELECT DISTINCT NULL::bigint, kind, subject, parent, position
FROM (SELECT kind, subject, parent, position FROM follow_ups WHERE seq <= $1 ORDER BY seq LIMIT 1000) AS oldest;
