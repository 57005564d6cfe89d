-- The numbers of all records of a follow-up. Read before what it is about, so that a record which is
-- removed afterwards is one whose change was seen. Index: follow_ups_by_subject.
SELECT seq FROM follow_ups WHERE subject = $2 AND kind = $1;
