-- A session takes nothing of others any more. Index: takers_of_session.
DELETE FROM takers WHERE session = $1;
