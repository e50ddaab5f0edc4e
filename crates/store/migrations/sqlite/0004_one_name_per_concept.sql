-- Columns, tables and indexes get the names that the code has for them. Only names change: no row is touched.

-- An API key is what a caller authenticates with; other keys are public keys.
ALTER TABLE webhooks RENAME COLUMN key TO api_key;
DROP INDEX webhooks_of_key;
CREATE INDEX webhooks_of_api_key ON webhooks (api_key, ordinal);

-- A JSON array of the secrets before the current one, and the last of their ends.
ALTER TABLE webhooks RENAME COLUMN previous_secret TO previous_secrets;
ALTER TABLE webhooks RENAME COLUMN previous_secret_until TO previous_secrets_until;

-- How often in a row the circuit breaker tripped; most attempts in flight to the endpoint, null for no limit.
ALTER TABLE endpoints RENAME COLUMN openings TO trips;
ALTER TABLE endpoints RENAME COLUMN concurrency TO concurrency_limit;

-- Attempts of this run of the retry schedule; the random number that proves a lease.
ALTER TABLE deliveries RENAME COLUMN tries TO retry_index;
ALTER TABLE deliveries RENAME COLUMN lease TO lease_token;

-- The first slot that passed a filter whole.
ALTER TABLE filter_state RENAME COLUMN since_slot TO in_force_slot;
ALTER TABLE filter_changes RENAME COLUMN since_slot TO in_force_slot;

-- Slots of which messages were emitted at processed, and which are neither confirmed nor retracted.
ALTER TABLE open_slots RENAME TO unconfirmed_slots;
