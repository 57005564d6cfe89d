-- What an unfinished move left is gone.
DELETE FROM meta WHERE key = 'moving_from';
