-- What the items of a step did to the world goes with its list: what will stand in their places may be something else. It is laid by before.
DELETE FROM effects WHERE run_no = ?1 AND position >= ?2 AND position < ?3;
