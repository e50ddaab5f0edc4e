-- What an event must be, beside touching an address of the filters, to match: JSON; null where nothing else is asked for.
ALTER TABLE filters ADD COLUMN conditions TEXT;
