-- Nobody sees it from here on, nor takes it for a submission that is under way.
UPDATE runs SET is_visible = 0, owner = NULL, key = NULL WHERE no = ?1;
