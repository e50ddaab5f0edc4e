-- Packed batches: what staged messages of a backup got when they were committed, a JSON object; absent where an earlier release staged
-- them.
ALTER TABLE staged_batches ADD COLUMN terms TEXT;
