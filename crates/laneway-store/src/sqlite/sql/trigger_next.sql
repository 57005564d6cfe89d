-- When the next schedule is due, of those that are not. Index: triggers_due.
SELECT min(due_at) FROM triggers WHERE due_at > ?1;
