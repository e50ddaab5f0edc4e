-- Slots that an owner asks to be read for one webhook, and how far that is: the newest request of each kind. A dry run stores no
-- messages; `samples` are the first bodies that it found, a JSON array. `turn_at` is when some of the slots were read last, unix
-- milliseconds: whoever waits longest is next.
CREATE TABLE backfills (
    webhook    BIGINT NOT NULL REFERENCES webhooks (ordinal) ON DELETE CASCADE,
    dry_run    BIGINT NOT NULL CHECK (dry_run IN (0, 1)),
    first_slot BIGINT NOT NULL CHECK (first_slot >= 0),
    last_slot  BIGINT NOT NULL CHECK (last_slot >= first_slot),
    next_slot  BIGINT NOT NULL CHECK (next_slot >= first_slot),
    state      TEXT NOT NULL CHECK (state IN ('pending', 'done', 'failed')),
    error      TEXT,
    matched    BIGINT NOT NULL DEFAULT 0 CHECK (matched >= 0),
    told       BIGINT NOT NULL DEFAULT 0 CHECK (told >= 0),
    lost       BIGINT NOT NULL DEFAULT 0 CHECK (lost >= 0),
    samples    TEXT NOT NULL DEFAULT '[]',
    created_at BIGINT NOT NULL,
    turn_at    BIGINT NOT NULL,
    PRIMARY KEY (webhook, dry_run)
);

CREATE INDEX backfills_pending ON backfills (turn_at) WHERE state = 'pending';
