-- Keys of the API, stages of an event, health of the receivers. What a transaction of the hot path
-- writes is kept apart from what is large and rarely written: the filters of a webhook may be megabytes,
-- and SQLite rewrites a row whole.
--
-- Times are unix milliseconds UTC. Flags are 0 or 1. Keys are 32-byte public keys, concatenated. Every
-- foreign key names the ordinal, an integer, so that the rows of the hot path stay short.

DROP TRIGGER checkpoint_never_moves_back;
DROP INDEX deliveries_pending;
DROP INDEX deliveries_leased;
DROP INDEX deliveries_finished;
ALTER TABLE webhooks RENAME TO old_webhooks;
ALTER TABLE deliveries RENAME TO old_deliveries;
ALTER TABLE attempts RENAME TO old_attempts;
ALTER TABLE checkpoint RENAME TO old_checkpoint;

-- Who may use the API. Of a key only the SHA-256 is known (hexadecimal); a revoked one is kept, so that
-- a list shows when it ended.
CREATE TABLE api_keys (
    ordinal    INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT    NOT NULL UNIQUE CHECK (id GLOB 'key_?*'),
    name       TEXT    NOT NULL UNIQUE CHECK (length(name) > 0),
    hash       TEXT    NOT NULL UNIQUE CHECK (length(hash) = 64),
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;

-- Subscriptions, without their filters. `key` is null for those made while no keys were in use.
-- `version` counts the writes of the owner; `matched_revision` is the webhook revision at which what is
-- matched last changed. A deleted webhook stays until what it was owed is removed, bit by bit. A
-- relayed webhook is delivered over a connection that its owner holds open, until `relay_until`.
CREATE TABLE webhooks (
    ordinal               INTEGER PRIMARY KEY AUTOINCREMENT,
    id                    TEXT    NOT NULL UNIQUE CHECK (id GLOB 'wh_?*'),
    key                   INTEGER REFERENCES api_keys (ordinal),
    version               INTEGER NOT NULL DEFAULT 1 CHECK (version >= 1),
    matched_revision      INTEGER NOT NULL CHECK (matched_revision >= 0),
    url                   TEXT    NOT NULL CHECK (url GLOB 'http*://?*'),
    wants_account_change  INTEGER NOT NULL CHECK (wants_account_change IN (0, 1)),
    wants_transaction     INTEGER NOT NULL CHECK (wants_transaction IN (0, 1)),
    wants_program_event   INTEGER NOT NULL CHECK (wants_program_event IN (0, 1)),
    commitment            TEXT    NOT NULL CHECK (commitment IN ('processed', 'confirmed', 'finalized')),
    delivery_order        TEXT    NOT NULL CHECK (delivery_order IN ('none', 'perKey', 'strict')),
    description           TEXT,
    headers               TEXT    NOT NULL,
    gzip                  INTEGER NOT NULL CHECK (gzip IN (0, 1)),
    heartbeat_seconds     INTEGER CHECK (heartbeat_seconds > 0),
    active                INTEGER NOT NULL CHECK (active IN (0, 1)),
    disabled_reason       TEXT,
    created_at            INTEGER NOT NULL,
    secret                TEXT    NOT NULL CHECK (secret GLOB 'whsec_?*'),
    previous_secret       TEXT,
    previous_secret_until INTEGER,
    relay_until           INTEGER,
    deleted               INTEGER NOT NULL DEFAULT 0 CHECK (deleted IN (0, 1)),
    CHECK (wants_account_change + wants_transaction + wants_program_event > 0),
    -- Only the service disables with a reason, and switching a webhook on clears it.
    CHECK (active = 0 OR disabled_reason IS NULL),
    CHECK ((previous_secret IS NULL) = (previous_secret_until IS NULL))
) STRICT;

CREATE INDEX webhooks_of_key ON webhooks (key, ordinal);

-- What a webhook is about, always read and written whole, in the order the subscriber gave.
CREATE TABLE filters (
    webhook  INTEGER PRIMARY KEY REFERENCES webhooks (ordinal) ON DELETE CASCADE,
    accounts BLOB    NOT NULL CHECK (length(accounts) % 32 = 0),
    programs BLOB    NOT NULL CHECK (length(programs) % 32 = 0),
    digest   TEXT    NOT NULL,
    CHECK (length(accounts) + length(programs) > 0)
) STRICT;

-- The number that the next message of a webhook gets.
CREATE TABLE sequences (
    webhook INTEGER PRIMARY KEY REFERENCES webhooks (ordinal) ON DELETE CASCADE,
    next    INTEGER NOT NULL DEFAULT 1 CHECK (next >= 1)
) STRICT;

-- How a receiver does, as far as whoever delivers next must know.
CREATE TABLE endpoints (
    webhook           INTEGER PRIMARY KEY REFERENCES webhooks (ordinal) ON DELETE CASCADE,
    breaker           TEXT    NOT NULL DEFAULT 'closed' CHECK (breaker IN ('closed', 'open', 'halfOpen')),
    failures          INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0),
    openings          INTEGER NOT NULL DEFAULT 0 CHECK (openings >= 0),
    paused_until      INTEGER,
    concurrency       INTEGER CHECK (concurrency > 0),
    last_triggered_at INTEGER
) STRICT;

-- One row per message to one webhook; never updated. The id is derived from the event, so inserting the
-- same event again changes nothing; the body is kept byte for byte, because every attempt signs the same
-- bytes.
CREATE TABLE messages (
    webhook    INTEGER NOT NULL REFERENCES webhooks (ordinal) ON DELETE CASCADE,
    sequence   INTEGER NOT NULL CHECK (sequence >= 1),
    id         TEXT    NOT NULL UNIQUE CHECK (id GLOB 'msg_?*' AND id NOT GLOB '*.*'),
    kind       TEXT    NOT NULL,
    commitment TEXT    NOT NULL CHECK (commitment IN ('processed', 'confirmed', 'finalized')),
    slot       INTEGER NOT NULL CHECK (slot >= 0),
    order_key  TEXT,
    body       TEXT    NOT NULL CHECK (length(body) > 0),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (webhook, sequence)
) STRICT;

-- What a slot that dies takes back.
CREATE INDEX messages_processed ON messages (slot, webhook, sequence) WHERE commitment = 'processed';

-- The state of each message. `due_at` is when somebody may take it: for one under a lease that is the end
-- of the lease. It is null when the message is finished, and while an earlier one of its lane is not: a
-- lane is what must be delivered in order, and only its first pending message is ever due.
-- `tries` counts the attempts of this run of the schedule, `attempts` all of them.
CREATE TABLE deliveries (
    webhook     INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    state       TEXT    NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'failed')),
    attempts    INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    tries       INTEGER NOT NULL DEFAULT 0 CHECK (tries >= 0),
    due_at      INTEGER,
    lease       INTEGER,
    lane        TEXT,
    created_at  INTEGER NOT NULL,
    finished_at INTEGER,
    PRIMARY KEY (webhook, sequence),
    FOREIGN KEY (webhook, sequence) REFERENCES messages (webhook, sequence) ON DELETE CASCADE,
    CHECK ((state = 'pending') = (finished_at IS NULL)),
    CHECK (state = 'pending' OR (lease IS NULL AND due_at IS NULL))
) STRICT, WITHOUT ROWID;

-- What workers look for: the due messages of one webhook, oldest first.
CREATE INDEX deliveries_due ON deliveries (webhook, due_at, sequence) WHERE due_at IS NOT NULL;
-- How much of one receiver's share is taken.
CREATE INDEX deliveries_leased ON deliveries (webhook, due_at) WHERE lease IS NOT NULL;
-- Who is next in a lane.
CREATE INDEX deliveries_lane ON deliveries (webhook, lane, sequence) WHERE lane IS NOT NULL AND state = 'pending';
-- How much is owed, and since when.
CREATE INDEX deliveries_pending ON deliveries (created_at) WHERE state = 'pending';
-- What can be asked for again.
CREATE INDEX deliveries_failed ON deliveries (webhook, sequence) WHERE state = 'failed';
-- What retention looks for.
CREATE INDEX deliveries_finished ON deliveries (finished_at) WHERE finished_at IS NOT NULL;

-- One row per finished attempt. Bounded: the retry schedule ends, and the rows go with their message.
-- Timings are microseconds since the attempt began; null when it did not come so far.
CREATE TABLE attempts (
    webhook         INTEGER NOT NULL,
    sequence        INTEGER NOT NULL,
    number          INTEGER NOT NULL CHECK (number >= 1),
    url             TEXT    NOT NULL,
    started_at      INTEGER NOT NULL,
    duration_us     INTEGER NOT NULL CHECK (duration_us >= 0),
    resolved_us     INTEGER,
    connected_us    INTEGER,
    secured_us      INTEGER,
    first_byte_us   INTEGER,
    status          INTEGER CHECK (status BETWEEN 100 AND 999),
    error           TEXT CHECK (length(error) <= 500),
    request_headers TEXT    NOT NULL,
    response        TEXT,
    response_cut    INTEGER NOT NULL CHECK (response_cut IN (0, 1)),
    PRIMARY KEY (webhook, sequence, number),
    FOREIGN KEY (webhook, sequence) REFERENCES deliveries (webhook, sequence) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- One row: bytes of bodies and of what attempts brought back.
CREATE TABLE usage (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    messages INTEGER NOT NULL,
    bytes    INTEGER NOT NULL
) STRICT;

-- Every slot up to this one was read, at this commitment.
CREATE TABLE checkpoints (
    commitment TEXT PRIMARY KEY CHECK (commitment IN ('processed', 'confirmed', 'finalized')),
    slot       INTEGER NOT NULL CHECK (slot >= 0)
) STRICT;

CREATE TRIGGER checkpoint_never_moves_back BEFORE UPDATE ON checkpoints WHEN NEW.slot < OLD.slot
BEGIN
    SELECT RAISE(ABORT, 'the checkpoint never moves back');
END;

-- Slots of which messages were stored at processed, and whose fate is not known yet.
CREATE TABLE open_slots (
    slot      INTEGER PRIMARY KEY CHECK (slot >= 0),
    blockhash TEXT
) STRICT;

-- One row per webhook revision: from which slot on it was asked for, and from which it was in force.
CREATE TABLE filter_changes (
    revision       INTEGER PRIMARY KEY CHECK (revision >= 1),
    requested_slot INTEGER,
    since_slot     INTEGER
) STRICT;

INSERT INTO webhooks (ordinal, id, matched_revision, url, wants_account_change, wants_transaction,
    wants_program_event, commitment, delivery_order, headers, gzip, active, disabled_reason, created_at, secret)
SELECT ordinal, id, (SELECT revision FROM webhook_revision), url, wants_account_change, wants_transaction,
    wants_program_event, 'confirmed', 'none', '[]', 0, active, disabled_reason, created_at, secret
FROM old_webhooks;
INSERT INTO filters (webhook, accounts, programs, digest)
SELECT ordinal, accounts, programs, '' FROM old_webhooks;
INSERT INTO sequences (webhook, next) SELECT ordinal, next_sequence FROM old_webhooks;
INSERT INTO endpoints (webhook, last_triggered_at) SELECT ordinal, last_triggered_at FROM old_webhooks;
INSERT INTO messages (webhook, sequence, id, kind, commitment, slot, body, created_at)
SELECT w.ordinal, d.sequence, d.id, json_extract(CAST(d.body AS TEXT), '$.type'), 'confirmed', d.slot,
    CAST(d.body AS TEXT), d.created_at
FROM old_deliveries d JOIN old_webhooks w ON w.id = d.webhook_id;
INSERT INTO deliveries (webhook, sequence, state, attempts, tries, due_at, created_at, finished_at)
SELECT w.ordinal, d.sequence, d.state, d.attempts, d.attempts,
    CASE d.state WHEN 'pending' THEN d.next_attempt_at END, d.created_at, d.finished_at
FROM old_deliveries d JOIN old_webhooks w ON w.id = d.webhook_id;
INSERT INTO attempts (webhook, sequence, number, url, started_at, duration_us, status, error, request_headers,
    response_cut)
SELECT w.ordinal, d.sequence, a.number, w.url, a.started_at, a.duration_ms * 1000, a.status, a.error, '[]', 0
FROM old_attempts a JOIN old_deliveries d ON d.id = a.delivery_id JOIN old_webhooks w ON w.id = d.webhook_id;
INSERT INTO usage (one, messages, bytes) SELECT 1, count(*), coalesce(sum(length(body)), 0) FROM messages;
INSERT INTO checkpoints (commitment, slot) SELECT 'confirmed', slot FROM old_checkpoint;

DROP TABLE old_attempts;
DROP TABLE old_deliveries;
DROP TABLE old_webhooks;
DROP TABLE old_checkpoint;
