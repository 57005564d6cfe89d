-- Of some runs, those of whose workflow others are queued. Index: runs_queued.
SELECT no FROM runs
WHERE no = ANY ($1) AND EXISTS (SELECT 1 FROM runs AS queued WHERE queued.workflow = runs.workflow AND queued.status = 'queued');
