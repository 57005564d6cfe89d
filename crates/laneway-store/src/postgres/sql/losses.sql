-- How often nodes were lost, those first that were lost last: no more than `losses_forget` leaves. Index: losses_no_key.
SELECT node, lost, no FROM losses ORDER BY no DESC;
