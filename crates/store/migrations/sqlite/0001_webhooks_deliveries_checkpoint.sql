-- Times are unix milliseconds UTC. Keys are 32-byte public keys, concatenated.

-- Subscriptions. A webhook's filters are always read and written whole, so they are stored as one
-- blob of keys each, in the order the subscriber gave; `ordinal` gives lists a stable order.
CREATE TABLE webhooks (
    ordinal              INTEGER PRIMARY KEY AUTOINCREMENT,
    id                   TEXT    NOT NULL UNIQUE CHECK (id GLOB 'wh_?*'),
    url                  TEXT    NOT NULL CHECK (url GLOB 'http*://?*'),
    wants_account_change INTEGER NOT NULL CHECK (wants_account_change IN (0, 1)),
    wants_transaction    INTEGER NOT NULL CHECK (wants_transaction IN (0, 1)),
    wants_program_event  INTEGER NOT NULL CHECK (wants_program_event IN (0, 1)),
    accounts             BLOB    NOT NULL CHECK (length(accounts) % 32 = 0),
    programs             BLOB    NOT NULL CHECK (length(programs) % 32 = 0),
    active               INTEGER NOT NULL CHECK (active IN (0, 1)),
    disabled_reason      TEXT,
    created_at           INTEGER NOT NULL,
    last_triggered_at    INTEGER,
    secret               TEXT    NOT NULL CHECK (secret GLOB 'whsec_?*'),
    next_sequence        INTEGER NOT NULL DEFAULT 1 CHECK (next_sequence >= 1),
    CHECK (wants_account_change + wants_transaction + wants_program_event > 0),
    CHECK (length(accounts) + length(programs) > 0),
    -- Only the service disables with a reason, and switching a webhook on clears it.
    CHECK (active = 0 OR disabled_reason IS NULL)
) STRICT;

-- One row that counts the writes which change what must be matched. Readers compare it with the
-- value they have seen instead of reading every webhook again.
CREATE TABLE webhook_revision (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    revision INTEGER NOT NULL CHECK (revision >= 0)
) STRICT;
INSERT INTO webhook_revision (one, revision) VALUES (1, 0);

-- One row, or none before the first proof: the newest webhook revision whose filter the stream has
-- proved to be in force, and the first slot whose whole content passed that filter.
CREATE TABLE filter_state (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    revision   INTEGER NOT NULL CHECK (revision >= 0),
    since_slot INTEGER NOT NULL CHECK (since_slot >= 0)
) STRICT;

-- One row per message to one webhook. The id is derived from the event, so inserting the same event
-- again changes nothing; the body is kept byte for byte, because every attempt signs the same bytes.
-- A lease says until when one worker owns the message; it must outlive the delivery's deadline.
CREATE TABLE deliveries (
    id              TEXT    PRIMARY KEY CHECK (id GLOB 'msg_?*' AND id NOT GLOB '*.*'),
    webhook_id      TEXT    NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    sequence        INTEGER NOT NULL CHECK (sequence >= 1),
    slot            INTEGER NOT NULL CHECK (slot >= 0),
    body            BLOB    NOT NULL CHECK (length(body) > 0),
    state           TEXT    NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
    attempts        INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    next_attempt_at INTEGER NOT NULL,
    lease_until     INTEGER,
    created_at      INTEGER NOT NULL,
    finished_at     INTEGER,
    UNIQUE (webhook_id, sequence),
    CHECK ((state = 'pending') = (finished_at IS NULL)),
    CHECK (state = 'pending' OR lease_until IS NULL)
) STRICT;

-- What workers look for: the due messages of one webhook, oldest first.
CREATE INDEX deliveries_pending ON deliveries (webhook_id, next_attempt_at, sequence)
    WHERE state = 'pending';

-- What is under lease: how much of one receiver's share is taken.
CREATE INDEX deliveries_leased ON deliveries (webhook_id, lease_until) WHERE lease_until IS NOT NULL;

-- What retention looks for.
CREATE INDEX deliveries_finished ON deliveries (finished_at) WHERE finished_at IS NOT NULL;

-- One row per finished attempt. Bounded: the retry schedule ends, and the rows go with their message.
CREATE TABLE attempts (
    delivery_id TEXT    NOT NULL REFERENCES deliveries (id) ON DELETE CASCADE,
    number      INTEGER NOT NULL CHECK (number >= 1),
    started_at  INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL CHECK (duration_ms >= 0),
    status      INTEGER CHECK (status BETWEEN 100 AND 999),
    error       TEXT CHECK (length(error) <= 500),
    PRIMARY KEY (delivery_id, number)
) STRICT, WITHOUT ROWID;

-- One row, or none before the first slot: every slot up to this one is fully in `deliveries`.
CREATE TABLE checkpoint (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    slot INTEGER NOT NULL CHECK (slot >= 0)
) STRICT;

CREATE TRIGGER checkpoint_never_moves_back BEFORE UPDATE ON checkpoint WHEN NEW.slot < OLD.slot
BEGIN
    SELECT RAISE(ABORT, 'the checkpoint never moves back');
END;
