-- When the first of the failed attempts in a row ended, unix milliseconds; null before it, and where it is not known.
ALTER TABLE endpoints ADD COLUMN failing_since BIGINT;
