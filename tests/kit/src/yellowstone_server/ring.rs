//! Live ring of one commitment: what it carries for each message of the validator (pure).

use sluice_geyser::{Body, Commitment, SlotStatus};

use super::replay::Blocks;
use crate::scripted_chain::Message;

/// What the ring carries for the message of this number. At processed it is the message itself. Above, content comes with the
/// status that makes its slot confirmed or finalized, block by block, and statuses as they are.
#[must_use]
pub fn carried(messages: &[Message], number: usize, commitment: Commitment) -> Vec<Body> {
    let Some(Message::Update(body)) = messages.get(number) else {
        return Vec::new();
    };
    let reached = match commitment {
        Commitment::Processed => return vec![body.clone()],
        Commitment::Confirmed => SlotStatus::Confirmed,
        Commitment::Finalized => SlotStatus::Finalized,
    };
    let Body::Slot(update) = body else {
        return Vec::new();
    };
    if !implies(update.status, reached) {
        return vec![body.clone()];
    }
    let blocks = Blocks::after(&messages[..number]);
    let is_new = |slot: &u64| {
        !blocks.has(*slot, SlotStatus::Finalized)
            && (reached == SlotStatus::Finalized || !blocks.has(*slot, SlotStatus::Confirmed))
    };
    let ancestry = std::iter::successors(Some(update.slot), |slot| blocks.parent(*slot));
    let mut slots: Vec<u64> = ancestry.take_while(is_new).collect();
    slots.reverse();
    let mut carried: Vec<Body> = slots
        .into_iter()
        .flat_map(|slot| blocks.whole(slot))
        .collect();
    carried.push(body.clone());
    carried
}

/// Whether a slot of this status has reached that one.
fn implies(status: SlotStatus, reached: SlotStatus) -> bool {
    status == reached || (status == SlotStatus::Finalized && reached == SlotStatus::Confirmed)
}
