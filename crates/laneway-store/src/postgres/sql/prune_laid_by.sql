-- What is laid by of a run that goes. Along laid_by_effects_of_step.
DELETE FROM laid_by_effects WHERE run_no = $1;
