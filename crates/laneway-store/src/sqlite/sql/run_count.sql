-- Writes back what changes with every event of a run. The other columns stand in indexes, which an UPDATE that names
-- them writes anew even where nothing has changed.
UPDATE runs SET last_event = ?2, unsettled = ?3 WHERE no = ?1;
