-- Webhooks that are told what becomes of the other webhooks of their owner; `kinds` is a JSON array of names.
CREATE TABLE operational_webhooks (
    webhook BIGINT PRIMARY KEY REFERENCES webhooks (ordinal) ON DELETE CASCADE,
    kinds   TEXT NOT NULL
);

-- Quota of an API key: most MiB of messages that are kept for its webhooks; null for what the configuration says of all.
ALTER TABLE api_keys ADD COLUMN max_stored_mib BIGINT CHECK (max_stored_mib > 0);
