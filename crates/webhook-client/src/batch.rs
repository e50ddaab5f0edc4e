//! Batches: the body and the id of one POST that carries several messages (pure).

use sha2::{Digest, Sha256};
use sluice_store::MessageId;

/// Hashed before the ids of a batch, so that its id is the hash of nothing else.
const ID_DOMAIN: &[u8] = b"sluice batch";

/// The id of a batch, sent as `webhook-id`: the same for the same messages in the same order.
#[must_use]
pub fn batch_id<'a>(messages: impl IntoIterator<Item = &'a MessageId>) -> MessageId {
    let mut hash = Sha256::new_with_prefix(ID_DOMAIN);
    for id in messages {
        hash.update(id.as_str());
        hash.update(b"\n");
    }
    MessageId::from_bytes(hash.finalize().into())
}

/// A JSON array of these bodies, objects with members, each of which begins with the id of its message.
#[must_use]
pub fn batch_body<'a>(messages: impl IntoIterator<Item = (&'a MessageId, &'a str)>) -> String {
    let mut body = String::from("[");
    for (nth, (id, message)) in messages.into_iter().enumerate() {
        if nth > 0 {
            body.push(',');
        }
        body.push_str("{\"id\":\"");
        body.push_str(id.as_str());
        body.push_str("\",");
        body.push_str(message.strip_prefix('{').unwrap_or("}"));
    }
    body.push(']');
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_an_array_of_messages_with_their_ids_under_an_id_of_its_own() {
        let [one, other] = [1, 2].map(|byte| MessageId::from_bytes([byte; 32]));
        let body = batch_body([(&one, r#"{"sequence":1}"#), (&other, r#"{"sequence":2}"#)]);
        let expected =
            format!(r#"[{{"id":"{one}","sequence":1}},{{"id":"{other}","sequence":2}}]"#);
        assert_eq!(body, expected);
        let both = batch_id([&one, &other]);
        assert_eq!(both, batch_id([&one, &other]), "the same at a retry");
        for different in [batch_id([&other, &one]), batch_id([&one]), one.clone()] {
            assert_ne!(both, different);
        }
    }
}
