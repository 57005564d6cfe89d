-- The commit of this transaction need not be on disk: whatever follows it there brings it along.
SELECT set_config('synchronous_commit', 'off', true);
