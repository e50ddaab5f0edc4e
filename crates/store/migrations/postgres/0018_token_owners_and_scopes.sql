-- Owners of token accounts, 32 bytes each: a webhook may name them alone.
ALTER TABLE filters ADD COLUMN token_owners BYTEA NOT NULL DEFAULT ''::bytea CHECK (length(token_owners) % 32 = 0);
ALTER TABLE filters DROP CONSTRAINT filters_check;
ALTER TABLE filters ADD CONSTRAINT filters_check CHECK (length(accounts) + length(programs) + length(token_owners) > 0);

-- What an API key may do: names of scopes with blanks between them; null for all. A process of an earlier release does not look at
-- them, so keys with scopes are made when none runs any more.
ALTER TABLE api_keys ADD COLUMN scopes TEXT;
