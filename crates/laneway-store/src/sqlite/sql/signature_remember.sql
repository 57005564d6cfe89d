-- The delivery that first carried a signature: this one, unless the signature is remembered from after ?5.
INSERT INTO webhook_signatures AS known (path, signature, delivery, received_at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (path, signature) DO UPDATE SET
    delivery = CASE WHEN known.received_at <= ?5 THEN excluded.delivery ELSE known.delivery END,
    received_at = CASE WHEN known.received_at <= ?5 THEN excluded.received_at ELSE known.received_at END
RETURNING delivery;
