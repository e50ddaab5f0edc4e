-- Packed batches: staged messages that were serialized before they had numbers. What they got when they were committed is in `terms`,
-- a JSON object; `messages` is one too, of what they are, and `bodies` their beginnings and then their ends, each once. Both are
-- compressed. Where `terms` is absent an earlier release staged the rows.
ALTER TABLE staged_batches ADD COLUMN terms TEXT;
