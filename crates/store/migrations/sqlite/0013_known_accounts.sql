-- The accounts that watched programs own, as the confirmed chain shows it: since the slot at whose end it was seen first, until
-- the slot at whose end it was so no more.
CREATE TABLE known_accounts (
    address TEXT NOT NULL,
    since_slot INTEGER NOT NULL CHECK (since_slot >= 0),
    owner TEXT NOT NULL,
    left_slot INTEGER CHECK (left_slot >= since_slot),
    PRIMARY KEY (address, since_slot)
) STRICT;
