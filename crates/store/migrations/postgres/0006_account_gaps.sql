-- The first slot, by commitment, from which on changes of accounts were not read and webhooks were not told so yet.
CREATE TABLE account_gaps (
    commitment TEXT PRIMARY KEY CHECK (commitment IN ('confirmed', 'finalized')),
    first_slot BIGINT NOT NULL CHECK (first_slot >= 0)
);
