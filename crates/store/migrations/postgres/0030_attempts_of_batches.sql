-- With which message the first attempt at a delivery is kept, where that was an attempt at a whole batch: its row would be the same
-- for each of them. Null where the delivery has a row of its own. No foreign key: that message is the last of its batch, and goes
-- last.
ALTER TABLE deliveries ADD COLUMN attempted_with BIGINT;
