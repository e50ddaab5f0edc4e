-- Account gaps by commitment: the first slot whose account changes were not read, until webhooks got a `gap`.
CREATE TABLE account_gaps (
    commitment TEXT PRIMARY KEY CHECK (commitment IN ('confirmed', 'finalized')),
    first_slot BIGINT NOT NULL CHECK (first_slot >= 0)
);
