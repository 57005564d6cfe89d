-- Records what a change makes possible elsewhere. Never waits: rows have no other key than their number.
INSERT INTO follow_ups (kind, subject, parent, position) SELECT * FROM unnest($1, $2, $3, $4);
