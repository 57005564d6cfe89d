-- It is started, or is not wanted any more.
DELETE FROM wanted_runs WHERE run_no = ?1 AND position = ?2;
