-- Why the stream's server refuses the filter of a webhook, in its own words; null while it does not.
ALTER TABLE webhooks ADD COLUMN refused TEXT;
