-- Staged batches: messages that are stored and leased, but not yet rows of `messages` and `deliveries`. What a slot emits is one row
-- here first, without the look-ups and indexes there, so that it is on the disk, and on its way, early. It is moved there before
-- anything else is written, or read of it. `messages` is a JSON array of all columns but the bodies, which follow one another in
-- `bodies`; both are compressed (Zstandard).
CREATE TABLE staged_batches (
    ordinal  INTEGER PRIMARY KEY,
    pending  INTEGER NOT NULL CHECK (pending > 0),
    messages BLOB NOT NULL,
    bodies   BLOB NOT NULL
) STRICT;
