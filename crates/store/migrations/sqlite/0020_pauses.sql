-- Slots that a webhook did not watch, from when it was switched off until it was switched on (`last_slot`, null before), which
-- it is told in a `resumed` message; the row goes then.
CREATE TABLE pauses (
    webhook    INTEGER PRIMARY KEY REFERENCES webhooks (ordinal) ON DELETE CASCADE,
    first_slot INTEGER NOT NULL CHECK (first_slot >= 0),
    last_slot  INTEGER CHECK (last_slot >= 0)
) STRICT;
