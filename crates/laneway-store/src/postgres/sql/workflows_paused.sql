-- Who paused some workflows, of those that somebody paused. Along the primary key.
SELECT name, by, since FROM paused_workflows WHERE name = ANY ($1);
