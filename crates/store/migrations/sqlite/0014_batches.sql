-- Batches of a webhook: most messages and bytes of bodies of one POST, and for how long a message waits for others,
-- milliseconds; null where each message is posted alone.
ALTER TABLE webhooks ADD COLUMN batch_messages INTEGER CHECK (batch_messages > 0);
ALTER TABLE webhooks ADD COLUMN batch_bytes INTEGER CHECK (batch_bytes > 0);
ALTER TABLE webhooks ADD COLUMN batch_wait_ms INTEGER CHECK (batch_wait_ms >= 0);
