-- A task has ended: larger versions need not wait for it.
DELETE FROM orders WHERE key = ?1 AND version = ?2 AND run_no = ?3 AND position = ?4;
