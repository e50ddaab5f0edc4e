-- What the API has learned of the compute units of the exchange, as JSON: the chain shows it again where this is lost.
CREATE TABLE learned_units (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    learned TEXT NOT NULL
) STRICT;
