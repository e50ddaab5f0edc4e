-- When the retry of a delivery is due by its own schedule, where it is tried before that, as the probe of an endpoint whose breaker is
-- not closed. Null where `due_at` is its own time. An earlier release takes such a probe for the retry.
ALTER TABLE deliveries ADD COLUMN scheduled_at INTEGER;
