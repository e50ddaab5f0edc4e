-- Quotas of an API key: most webhooks, and most addresses that these watch together; null for what the configuration says.
ALTER TABLE api_keys ADD COLUMN max_webhooks INTEGER CHECK (max_webhooks > 0);
ALTER TABLE api_keys ADD COLUMN max_addresses INTEGER CHECK (max_addresses > 0);
