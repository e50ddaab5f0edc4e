-- Several secrets may sign at once: `previous_secret` becomes a JSON array of pairs, the latest secret first, each
-- with its end in unix milliseconds. `previous_secret_until` is the last of the ends.
UPDATE webhooks
SET previous_secret = json_array(json_array(previous_secret, previous_secret_until))
WHERE previous_secret IS NOT NULL;
