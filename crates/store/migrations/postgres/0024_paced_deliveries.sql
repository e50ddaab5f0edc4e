-- Quotas of an API key: most messages that are handed over for it in a second, and most deliveries that are leased for it at
-- once, by all processes together; null for as many as there are. When its next message may be handed over, unix microseconds,
-- and when the rate last held messages back, unix milliseconds.
ALTER TABLE api_keys ADD COLUMN max_messages_per_second BIGINT CHECK (max_messages_per_second > 0);
ALTER TABLE api_keys ADD COLUMN max_delivery_slots BIGINT CHECK (max_delivery_slots > 0);
ALTER TABLE api_keys ADD COLUMN next_message_micros BIGINT NOT NULL DEFAULT 0;
ALTER TABLE api_keys ADD COLUMN throttled_at BIGINT;

-- When the next attempt to an endpoint whose owner asks for a rate may begin, unix microseconds.
ALTER TABLE endpoints ADD COLUMN next_attempt_micros BIGINT NOT NULL DEFAULT 0;
