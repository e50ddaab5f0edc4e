-- The idempotency key of the request that created a webhook, and the hash of what it asked for; null where it gave none.
ALTER TABLE webhooks ADD COLUMN idempotency_key TEXT;
ALTER TABLE webhooks ADD COLUMN idempotency_hash TEXT;
CREATE UNIQUE INDEX webhooks_idempotency ON webhooks (coalesce(api_key, 0), idempotency_key)
    WHERE idempotency_key IS NOT NULL AND deleted = 0;
