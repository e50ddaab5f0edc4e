-- The first slot whose events a webhook is told: the one after the confirmed checkpoint at which it was created or switched on
-- last. Slots before it are read again for the finality of others, and would be numbered after later ones. Null: every slot.
ALTER TABLE webhooks ADD COLUMN first_slot INTEGER CHECK (first_slot >= 0);
