-- IDLs that owners uploaded, null for those made while no keys were in use. An owner's own IDL of a program decodes its events for
-- that owner's webhooks alone.
CREATE TABLE idls (
    api_key     INTEGER REFERENCES api_keys (ordinal),
    program     TEXT    NOT NULL,
    idl         TEXT    NOT NULL,
    uploaded_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX idls_of_owner ON idls (coalesce(api_key, 0), program);

-- What the IDL accounts of watched programs held when they were read last; `idl` is null where there was none that is understood.
CREATE TABLE chain_idls (
    program TEXT    PRIMARY KEY,
    idl     TEXT,
    read_at INTEGER NOT NULL
) STRICT;

-- One row that counts the changes of both. Readers compare it with the value they have seen.
CREATE TABLE idl_revision (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    revision INTEGER NOT NULL CHECK (revision >= 0)
) STRICT;
INSERT INTO idl_revision (one, revision) VALUES (1, 0);
