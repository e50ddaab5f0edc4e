-- A webhook may be told of operations alone: then it has no kinds of events and no addresses, which two rules of whole tables
-- refused. That one asks for something at all is the store's own rule now. SQLite changes a rule of a table only with the
-- table, and others refer to `webhooks`, so its text is changed where SQLite keeps it, which only lifts the rule. A process of
-- an earlier release, which knows the text of before, writes no such webhook itself.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = replace(sql, 'CHECK (wants_account_change + wants_transaction + wants_program_event > 0),', '')
WHERE type = 'table' AND name = 'webhooks';
PRAGMA writable_schema = RESET;

-- Nothing refers to this one. That it is made anew has every process read the schema again.
CREATE TABLE filters_that_may_be_empty (
    webhook  INTEGER PRIMARY KEY REFERENCES webhooks (ordinal) ON DELETE CASCADE,
    accounts BLOB    NOT NULL CHECK (length(accounts) % 32 = 0),
    programs BLOB    NOT NULL CHECK (length(programs) % 32 = 0),
    digest   TEXT    NOT NULL,
    conditions TEXT,
    token_owners BLOB NOT NULL DEFAULT x'' CHECK (length(token_owners) % 32 = 0)
) STRICT;
INSERT INTO filters_that_may_be_empty (webhook, accounts, programs, digest, conditions, token_owners)
SELECT webhook, accounts, programs, digest, conditions, token_owners FROM filters;
DROP TABLE filters;
ALTER TABLE filters_that_may_be_empty RENAME TO filters;
