-- How its owner wants a webhook to be delivered to, where that is not as every webhook is: JSON; null where it is. A process of an
-- earlier release goes by its own rules.
ALTER TABLE webhooks ADD COLUMN delivery_options TEXT;
