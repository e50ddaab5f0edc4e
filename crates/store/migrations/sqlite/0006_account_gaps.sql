-- Account gaps by commitment: the first slot whose account changes were not read, until webhooks got a `gap`.
CREATE TABLE account_gaps (
    commitment TEXT PRIMARY KEY CHECK (commitment IN ('confirmed', 'finalized')),
    first_slot INTEGER NOT NULL CHECK (first_slot >= 0)
) STRICT;
