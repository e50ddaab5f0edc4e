-- When an API key stops being accepted by itself, unix milliseconds; null where it is accepted until it is revoked.
ALTER TABLE api_keys ADD COLUMN expires_at INTEGER;
