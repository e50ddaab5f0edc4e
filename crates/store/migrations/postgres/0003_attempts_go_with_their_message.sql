-- Attempts are written with their message locked, so that it is there needs no check of its own, which locks it once
-- more for every attempt. When messages are removed, their attempts go with them.
ALTER TABLE attempts DROP CONSTRAINT attempts_webhook_sequence_fkey;

CREATE FUNCTION remove_attempts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM attempts USING gone
    WHERE attempts.webhook = gone.webhook AND attempts.sequence = gone.sequence;
    RETURN NULL;
END;
$$;

CREATE TRIGGER attempts_go_with_their_message AFTER DELETE ON deliveries
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION remove_attempts();
