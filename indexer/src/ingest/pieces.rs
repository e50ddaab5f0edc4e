//! Pieces: in which parts the messages of a slot are committed (pure).
//!
//! Many are not committed at once, so that the first are on their way while the others are written. Each piece is twice as long as the
//! one before: while few are sent many are written, and a long row of short commits would be in the way of the results of what is
//! sent. A longer one costs each of its messages less, above all where many webhooks are told of the same events.

use std::iter::Peekable;

use sluice_store::{NewMessage, PackedMessages};

/// Messages of the first piece: fewer cost more each, of more the first are later on their way.
const FIRST_PIECE: usize = 64;

/// Messages of the longest piece, which costs each of them hardly more than a longer one would. So long the results of what is
/// sent wait for their turn to be written: some 50 ms.
const LONGEST_PIECE: usize = 2_048;

/// Bytes of bodies in a piece of more than one message, which are in memory twice while it is written.
const PIECE_BYTES: u64 = 16 * 1024 * 1024;

/// Some of a slot's messages, in order, at least one.
#[derive(Debug)]
pub struct Piece {
    /// The messages.
    pub messages: Vec<NewMessage>,
    /// These messages, packed; `None` where that is left to their commit.
    pub packed: Option<PackedMessages>,
    /// Whether no more follow.
    pub is_last: bool,
}

/// The pieces of what a slot emits.
#[derive(Debug)]
pub struct Pieces<M: Iterator<Item = NewMessage>> {
    messages: Peekable<M>,
    /// Messages of the next one.
    length: usize,
}

impl<M: Iterator<Item = NewMessage>> Pieces<M> {
    /// The pieces of these messages.
    pub fn of(messages: impl IntoIterator<IntoIter = M>) -> Self {
        Self {
            messages: messages.into_iter().peekable(),
            length: FIRST_PIECE,
        }
    }
}

impl<M: Iterator<Item = NewMessage>> Iterator for Pieces<M> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let mut messages = vec![self.messages.next()?];
        let mut bytes = messages.iter().map(bytes_of).sum::<u64>();
        while messages.len() < self.length {
            let fits = |next: &NewMessage| {
                bytes = bytes.saturating_add(bytes_of(next));
                bytes <= PIECE_BYTES
            };
            let Some(next) = self.messages.next_if(fits) else {
                break;
            };
            messages.push(next);
        }
        self.length = self.length.saturating_mul(2).min(LONGEST_PIECE);
        Some(Piece {
            messages,
            packed: None,
            is_last: self.messages.peek().is_none(),
        })
    }
}

fn bytes_of(message: &NewMessage) -> u64 {
    message.body.len_at_most()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sluice_store::{BodyTemplate, Commitment, EventKind, MessageId, MessageKind, WebhookId};

    use super::*;

    fn of_bytes(bytes: usize) -> NewMessage {
        NewMessage {
            id: MessageId::from_bytes([1; 32]),
            webhook: WebhookId::from_random([1; 16]),
            kind: MessageKind::Event(EventKind::Transaction),
            commitment: Commitment::Confirmed,
            slot: 1,
            order_key: None,
            body: BodyTemplate::new(String::new(), Arc::from("x".repeat(bytes))),
        }
    }

    /// The lengths of the pieces, the last of which says that it is.
    fn lengths(messages: Vec<NewMessage>) -> Vec<usize> {
        let pieces: Vec<_> = Pieces::of(messages).collect();
        let is_last: Vec<_> = pieces.iter().map(|piece| piece.is_last).collect();
        let last = pieces.len().saturating_sub(1);
        let expected: Vec<_> = (0..pieces.len()).map(|nth| nth == last).collect();
        assert_eq!(is_last, expected);
        pieces.iter().map(|piece| piece.messages.len()).collect()
    }

    #[test]
    fn each_piece_is_twice_as_long_as_the_one_before_up_to_the_longest() {
        let message = of_bytes(10);
        let of = |count| lengths(vec![message.clone(); count]);
        assert_eq!(of(0), [0; 0]);
        assert_eq!(of(1), [1]);
        assert_eq!(of(FIRST_PIECE), [64]);
        assert_eq!(of(400), [64, 128, 208]);
        assert_eq!(of(8_000), [64, 128, 256, 512, 1_024, 2_048, 2_048, 1_920]);
    }

    #[test]
    fn a_piece_has_no_more_than_its_bytes_or_a_single_message() {
        let bytes = usize::try_from(PIECE_BYTES).expect("fits");
        let (small, third, large) = (of_bytes(10), of_bytes(bytes / 3), of_bytes(bytes * 2));
        assert_eq!(lengths(vec![large.clone(); 2]), [1, 1]);
        assert_eq!(lengths(vec![third; 5]), [2, 2, 1]);
        assert_eq!(lengths(vec![small.clone(), large, small]), [1, 1, 1]);
    }
}
