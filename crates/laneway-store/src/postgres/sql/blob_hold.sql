-- The same for whoever is about to name it: nobody sweeps it before that is committed, and who does so just now is waited for.
SELECT size FROM blobs WHERE hash = $1 AND is_whole FOR KEY SHARE;
