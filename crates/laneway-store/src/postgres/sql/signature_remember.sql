-- The delivery that first carried a signature: this one, unless the signature is remembered from less than $5 milliseconds ago.
-- The second of two that come at once waits for the row of the first.
INSERT INTO webhook_signatures AS known (path, signature, delivery, received_at)
VALUES ($1, $2, $3, coalesce($4::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint))
ON CONFLICT (path, signature) DO UPDATE SET
    delivery = CASE WHEN known.received_at <= excluded.received_at - $5::bigint THEN excluded.delivery ELSE known.delivery END,
    received_at = CASE WHEN known.received_at <= excluded.received_at - $5::bigint THEN excluded.received_at
        ELSE known.received_at END
RETURNING delivery;
