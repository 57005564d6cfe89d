-- Writes back what the gate keeper made of tasks. The WHERE is the fence: each row must be as the keeper saw it, and that
-- is what a claim is compared with. If one is not, the division fails, and with it the transaction: its COMMIT is on its
-- way already. Along the primary key.
WITH saved AS (
    UPDATE tasks
    SET status = made.status, gate = made.gate, rank = made.rank, run_at = made.run_at, attempt = made.attempt,
        retries = made.retries, lost = made.lost, session = made.session, is_ahead = made.is_ahead, node = made.node,
        stop = made.stop, reason = made.reason, detail = made.detail, exit_code = made.exit_code, output = made.output,
        started_at = made.started_at, took_ms = made.took_ms, finished_at = made.finished_at,
        gate_key = made.gate_key, wake_at = made.wake_at, class = made.class,
        wait = made.wait, due_at = made.due_at, growth = made.growth,
        given_back = made.given_back, start_by = made.start_by, fence = made.fence
    FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
                $24, $25, $26, $27, $28, $29, $30, $31, $32)
         AS made (run_no, position, was_status, was_generation, was_session, status, gate, rank, run_at, attempt, retries,
                  lost, session, is_ahead, node, stop, reason, detail, exit_code, output, started_at, took_ms, finished_at,
                  gate_key, wake_at, class, wait, due_at, growth, given_back, start_by, fence)
    WHERE tasks.run_no = made.run_no AND tasks.position = made.position AND tasks.status = made.was_status
      AND tasks.attempt + tasks.given_back = made.was_generation AND tasks.session IS NOT DISTINCT FROM made.was_session
    RETURNING 1
)
SELECT 1 / (SELECT count(*) = cardinality($1) FROM saved)::int;
