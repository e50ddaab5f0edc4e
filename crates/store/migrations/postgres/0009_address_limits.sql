-- One row: how many addresses the stream serves at most, of all webhooks together; null where no limit is known.
CREATE TABLE address_limits (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    accounts BIGINT CHECK (accounts >= 0),
    owners BIGINT CHECK (owners >= 0),
    mentioned BIGINT CHECK (mentioned >= 0)
);
