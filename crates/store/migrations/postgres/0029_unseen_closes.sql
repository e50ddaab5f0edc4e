-- Whether the stream shows no account as it is closed, but for those of transactions: its servers take no filter without keys, or
-- none is asked for.
ALTER TABLE address_limits ADD COLUMN closes_unseen BIGINT NOT NULL DEFAULT 0 CHECK (closes_unseen IN (0, 1));
