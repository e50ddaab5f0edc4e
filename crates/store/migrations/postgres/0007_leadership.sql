-- Leadership, one row: the epoch of the newest leader, and until when it leads by this database's clock.
-- The time is null when the leader has given the leadership back, and before the first leader. A renewal moves it. Every
-- write of a leader looks its epoch up here. The epoch is the key, so that in PostgreSQL a write that holds the row does
-- not wait for a renewal, and a new leader does wait for such a write.
CREATE TABLE leadership (
    epoch BIGINT PRIMARY KEY CHECK (epoch >= 0),
    until BIGINT
);
INSERT INTO leadership (epoch, until) VALUES (0, NULL);
