-- A session takes nothing of whatever run any more, but for runs that it owns, which have classes of their own below zero.
-- Index: takers_of_session.
DELETE FROM takers WHERE session = $1 AND class > 0;
