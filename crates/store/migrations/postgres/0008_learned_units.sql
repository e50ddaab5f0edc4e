-- Learned units: what the API knows of the compute units of the exchange, as JSON; the chain shows it again.
CREATE TABLE learned_units (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    learned TEXT NOT NULL
);
