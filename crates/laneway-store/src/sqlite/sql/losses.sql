-- How often nodes were lost, those first that were lost last. Along the unique index of `no`; there are no more than `losses_forget` leaves.
SELECT node, lost, no FROM losses ORDER BY no DESC;
