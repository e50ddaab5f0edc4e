-- The end of a body that several messages share: what an event says is the same for every webhook that it matches. It goes with
-- its last message. No foreign key leads here: it would cost a look-up for every message, and who inserts a message has just
-- inserted the end of its body.
CREATE TABLE bodies (
    ordinal INTEGER PRIMARY KEY,
    rest    TEXT NOT NULL CHECK (rest <> '')
) STRICT;

-- A message with a shared end has its own beginning in `body`; the length of the end stands beside it, so that nobody must read
-- it to count bytes.
ALTER TABLE messages ADD COLUMN shared_body INTEGER;
ALTER TABLE messages ADD COLUMN shared_bytes INTEGER NOT NULL DEFAULT 0 CHECK (shared_bytes >= 0);

-- Whether a body still has messages.
CREATE INDEX messages_of_body ON messages (shared_body) WHERE shared_body IS NOT NULL;

-- Whether messages may share ends: processes of a release without this step would send their beginnings alone. Set where there
-- can be none, which is in a new database, and where the operator says so.
ALTER TABLE usage ADD COLUMN shares_bodies INTEGER NOT NULL DEFAULT 0 CHECK (shares_bodies IN (0, 1));
