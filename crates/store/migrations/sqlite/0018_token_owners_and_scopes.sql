-- Owners of token accounts, 32 bytes each: a webhook may name them alone. That some address is named is a rule of the whole
-- table, which SQLite changes only with the table. Nothing refers to it.
CREATE TABLE filters_with_token_owners (
    webhook  INTEGER PRIMARY KEY REFERENCES webhooks (ordinal) ON DELETE CASCADE,
    accounts BLOB    NOT NULL CHECK (length(accounts) % 32 = 0),
    programs BLOB    NOT NULL CHECK (length(programs) % 32 = 0),
    digest   TEXT    NOT NULL,
    conditions TEXT,
    token_owners BLOB NOT NULL DEFAULT x'' CHECK (length(token_owners) % 32 = 0),
    CHECK (length(accounts) + length(programs) + length(token_owners) > 0)
) STRICT;
INSERT INTO filters_with_token_owners (webhook, accounts, programs, digest, conditions)
SELECT webhook, accounts, programs, digest, conditions FROM filters;
DROP TABLE filters;
ALTER TABLE filters_with_token_owners RENAME TO filters;

-- What an API key may do: names of scopes with blanks between them; null for all. A process of an earlier release does not look at
-- them, so keys with scopes are made when none runs any more.
ALTER TABLE api_keys ADD COLUMN scopes TEXT;
