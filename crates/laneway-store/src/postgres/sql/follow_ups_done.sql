-- Follow-ups are done. Only records that were seen: others tell of changes that were not.
DELETE FROM follow_ups WHERE seq = ANY ($1);
